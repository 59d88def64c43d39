package ui

import (
	"context"
	"time"

	"github.com/muster-agent/muster/cmd/internal/ask"
	"github.com/muster-agent/muster/cmd/internal/console"
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/status"
)

// hold keeps the container of an instance's failed process for so long from now on, or releases it.
func hold(ctx context.Context, _ console.Streams, a act) error {
	var body struct {
		For *float64 `json:"for"` // seconds; 0 releases it
	}
	if err := a.into(&body); err != nil {
		return err
	}
	if body.For == nil || !(*body.For == 0 || *body.For >= 1 && *body.For <= status.MostHold.Seconds()) {
		return exit.Usagef("body: want for, in seconds from now on, from 1 up to %s; 0 releases the container",
			status.MostHold)
	}
	if _, err := registry.ParseInstance(a.instance); err != nil {
		return exit.With(exit.Usage, err)
	}
	return ask.Hold(ctx, a.lookup, a.app+"/"+a.instance, time.Duration(*body.For*float64(time.Second)))
}
