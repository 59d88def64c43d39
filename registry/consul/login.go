package consul

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/hashicorp/consul/api"

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
	var ops []*api.TxnOp
	if !l.Until.IsZero() { // nobody takes it back
		if ops, err = c.loginsOver(ctx, app); err != nil {
			return nil, fmt.Errorf("permit a login: %w", err)
		}
	}
	if _, err := c.calls.commit(ctx, append(ops, opSet(key, text))...); err != nil { // it may be one that is over
		return nil, fmt.Errorf("permit a login: %w", err)
	}
	return func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTime)
		defer cancel()
		_, _ = c.calls.commit(ctx, opDelete(key)) // it ends with the run at the latest
	}, nil
}

// mostTimed is how many logins of an app may have an end of their own, and mostOver how many that are over go at once.
const (
	mostTimed = 256
	mostOver  = 32
)

// loginsOver delete logins whose time is over. The error says that too many others are there.
func (c *Client) loginsOver(ctx context.Context, app string) (ops []*api.TxnOp, err error) {
	pairs, err := c.calls.list(ctx, keysOf(app).login(""), consistent)
	if err != nil {
		return nil, err
	}
	timed := 0
	for _, pair := range pairs {
		l, err := decode[registry.Login](pair.Key, pair.Value)
		switch {
		case err != nil || l.Until.IsZero():
		case time.Now().Before(l.Until):
			timed++
		case len(ops) < mostOver:
			ops = append(ops, opDelete(pair.Key))
		}
	}
	if timed >= mostTimed {
		return nil, fmt.Errorf("%w: %s has %d whose time is not over", registry.ErrTooManyLogins, app, timed)
	}
	return ops, nil
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
