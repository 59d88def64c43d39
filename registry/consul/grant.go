package consul

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/muster-agent/muster/registry"
)

// Grant makes a grant, for which the agent of an instance acts once: a key that only who may write the app's keys can
// make, with the hash of a secret. The text is for the agent alone. Revoke takes it back if it was not used.
func (c *Client) Grant(ctx context.Context, app string, in registry.Instance) (text string, revoke func(), err error) {
	id, secret := strings.ToLower(rand.Text()), rand.Text()
	key := keysOf(app).grant(in, id)
	if _, err = c.calls.commit(ctx, opSet(key, []byte(hashOf(secret)))); err != nil {
		return "", nil, err
	}
	return id + "." + secret, func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTime)
		defer cancel()
		_, _ = c.calls.commit(ctx, opDelete(key)) // one that stays is of no use to anybody
	}, nil
}

// Redeem uses a grant up. The error is registry.ErrNoGrant if there is none of this text for the instance.
func (c *Client) Redeem(ctx context.Context, app string, in registry.Instance, text string) error {
	id, secret, ok := strings.Cut(text, ".")
	if !ok || id == "" || strings.Trim(id, "abcdefghijklmnopqrstuvwxyz234567") != "" { // as rand.Text has it
		return registry.ErrNoGrant
	}
	key := keysOf(app).grant(in, id)
	pair, err := c.calls.get(ctx, key, consistent)
	if err != nil {
		return err
	}
	if pair == nil || subtle.ConstantTimeCompare(pair.Value, []byte(hashOf(secret))) != 1 {
		return registry.ErrNoGrant
	}
	// Of two who show it at once, one is too late.
	_, err = c.calls.commit(ctx, opIndex(key, pair.ModifyIndex), opDelete(key))
	if isRefusal(err) {
		return registry.ErrNoGrant
	}
	if err != nil {
		return fmt.Errorf("use a grant: %w", err)
	}
	return nil
}

func hashOf(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}
