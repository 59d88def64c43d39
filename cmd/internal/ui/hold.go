package ui

import (
	"context"

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
	keep, err := status.HoldFor(body.For)
	if err != nil {
		return exit.Usagef("body: %w", err)
	}
	if _, err := registry.ParseInstance(a.instance); err != nil {
		return exit.With(exit.Usage, err)
	}
	return ask.Hold(ctx, a.lookup, a.app+"/"+a.instance, keep)
}
