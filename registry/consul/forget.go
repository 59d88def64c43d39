package consul

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/muster-agent/muster/registry"
)

// ErrLive refuses to forget an app that still has live members.
var ErrLive = errors.New("app still has live members")

// Forget removes everything of an app. It refuses with ErrLive while any index is held, and with registry.ErrNoApp if
// the app does not exist.
func (c *Client) Forget(ctx context.Context, app string) error {
	s, err := c.Status(ctx, app)
	if errors.Is(err, registry.ErrNoApp) {
		return c.forgetRest(ctx, app, err)
	}
	if err != nil {
		return err
	}
	return c.forget(ctx, s)
}

// forgetRest removes the rest of an app that has no record.
func (c *Client) forgetRest(ctx context.Context, app string, none error) error {
	k := keysOf(app)
	names, err := c.calls.names(ctx, k.base, "")
	if err != nil {
		return err
	}
	if len(names) == 0 {
		return none
	}
	_, err = c.calls.commit(ctx, opAbsent(k.app()), opDeleteTree(k.base))
	return err
}

func (c *Client) forget(ctx context.Context, s Status) error {
	if s.Live > 0 || s.Conductor != "" && s.Verdict == nil {
		return fmt.Errorf("app %s: %w (%d)", s.ID, ErrLive, s.Live)
	}
	k := keysOf(s.ID)
	directive, err := c.calls.get(ctx, k.directive(), consistent)
	if err != nil {
		return err
	}
	if directive == nil {
		return fmt.Errorf("app %s: %w", s.ID, registry.ErrNoApp)
	}
	// Every claim checks the directive's index, so none can follow. Earlier claims show in the live keys, which the
	// transaction checks as far as it can.
	_, err = c.calls.commit(ctx, k.forget(directive.ModifyIndex, s.App.Counts)...)
	if isRefusal(err) {
		return fmt.Errorf("app %s changed while it was being forgotten: %w", s.ID, ErrLive)
	}
	return err
}

// ForgetOlderThan forgets all apps without live members whose last change (verdict, else directive) is older than age
// at the time now, and returns their names.
func (c *Client) ForgetOlderThan(ctx context.Context, age time.Duration, now time.Time) ([]string, error) {
	all, _, err := c.Apps(ctx, nil) // of what does not decode the age is not known
	if err != nil {
		return nil, err
	}
	var gone []string
	for _, s := range all {
		if s.Live > 0 || now.Sub(lastWord(s)) < age {
			continue
		}
		err := c.forget(ctx, s)
		if errors.Is(err, ErrLive) {
			continue
		}
		if err != nil {
			return gone, err
		}
		gone = append(gone, s.ID)
	}
	return gone, nil
}

func lastWord(s Status) time.Time {
	at := s.Directive.At
	if at.IsZero() {
		at = s.App.Created
	}
	if s.Verdict != nil && s.Verdict.At.After(at) {
		return s.Verdict.At
	}
	return at
}
