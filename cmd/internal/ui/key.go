package ui

import (
	"context"
	"time"

	"github.com/muster-agent/muster/cmd/internal/ssh"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/status"
)

// How long a key of the page lets its holder log in: who downloads one forgets it.
const (
	keyFor     = 12 * time.Hour
	mostKeyFor = 7 * 24 * time.Hour
)

// issued is a key of the app's run. It stands in this answer, and nowhere else.
type issued struct {
	Version int `json:"version"`
	ssh.Issued
}

// issueKey makes a key that logs in to the instances of an app for a while.
func issueKey(ctx context.Context, a act) (ssh.Issued, error) {
	body := struct {
		For float64 `json:"for"` // seconds
	}{For: keyFor.Seconds()}
	if err := a.into(&body); err != nil {
		return ssh.Issued{}, err
	}
	if !(body.For >= 1 && body.For <= mostKeyFor.Seconds()) {
		return ssh.Issued{}, exit.Usagef("body: for: got %g, want the seconds that the key lasts, from 1 up to %g",
			body.For, mostKeyFor.Seconds())
	}
	until := status.Stamp(time.Now().Add(time.Duration(body.For * float64(time.Second))))
	return ssh.Options{Lookup: a.lookup}.Issue(ctx, a.app, until)
}
