package consul

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/muster-agent/muster/registry"
)

// Permit lets whoever has the private half of a key log in to the instances of a run: a key of the registry that only
// who may write the app's keys can make. Revoke takes it back.
func (c *Client) Permit(ctx context.Context, app string, l registry.Login) (revoke func(), err error) {
	text, err := registry.Encode(l)
	if err != nil {
		return nil, err
	}
	key := keysOf(app).login(printOf(l.Key))
	if _, err := c.calls.commit(ctx, opSet(key, text)); err != nil {
		return nil, fmt.Errorf("permit a login: %w", err)
	}
	return func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTime)
		defer cancel()
		_, _ = c.calls.commit(ctx, opDelete(key)) // it ends with the run at the latest
	}, nil
}

// Permitted is who may log in to the instances of a run with a key. The error is registry.ErrNoLogin if nobody may.
func (c *Client) Permitted(ctx context.Context, app, run, key string) (registry.Login, error) {
	pair, err := c.calls.get(ctx, keysOf(app).login(printOf(key)), consistent)
	if err != nil {
		return registry.Login{}, fmt.Errorf("look up a login: %w", err)
	}
	if pair == nil {
		return registry.Login{}, registry.ErrNoLogin
	}
	l, err := decode[registry.Login](pair.Key, pair.Value)
	if err == nil && (l.Key != key || l.Run != run || !l.Until.IsZero() && time.Now().After(l.Until)) {
		err = registry.ErrNoLogin
	}
	return l, err
}

func printOf(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:])
}
