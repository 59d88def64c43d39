package consul

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/muster-agent/muster/registry"
)

// probeKey does not exist: looking at it and failing to change it shows what is permitted, and changes nothing.
const probeKey = root + "doctor"

// OpenToAll asks a registry without a token whether whoever reaches it may read and write the keys of all apps.
func OpenToAll(ctx context.Context, at registry.Address) (read, write bool, err error) {
	l, err := connect(at, &token{})
	if err != nil {
		return false, false, err
	}
	defer l.close()
	return l.probe(ctx, probeKey)
}

// Rights are what the client's own token may do.
type Rights struct {
	Read, Write bool // the keys of the app that was asked about; both true without one
	Sessions    bool // to make them; true without an app
	Anonymous   bool // Consul wants tokens, and the client has none
	Empty       bool // the token has neither a policy nor a role, and Consul permits nothing without
	Name        string
}

// Rights asks what the client's token may do with the keys of an app; app "" asks for the token alone. A registry
// without tokens permits everything.
func (c *Client) Rights(ctx context.Context, app string) (Rights, error) {
	r := Rights{Read: true, Write: true, Sessions: true}
	key := probeKey
	if app != "" {
		key = keysOf(app).base + "doctor"
	}
	read, write, err := c.calls.probe(ctx, key)
	if err == nil && app != "" {
		r.Read, r.Write = read, write
		r.Sessions, err = permits(c.calls.trySession(ctx))
	}
	if err != nil {
		return Rights{}, err
	}
	err = c.calls.do(ctx, "read the own token", func(ctx context.Context) error {
		self, _, err := c.calls.api.ACL().TokenReadSelf((&api.QueryOptions{}).WithContext(ctx))
		if err != nil {
			return err
		}
		// AccessorID of the token that stands for none (Consul: Anonymous Token).
		r.Anonymous = self.AccessorID == "00000000-0000-0000-0000-000000000002"
		r.Name = self.AccessorID
		r.Empty = !write &&
			len(self.Policies)+len(self.Roles)+len(self.ServiceIdentities)+len(self.NodeIdentities) == 0
		return nil
	})
	switch {
	case errors.Is(err, registry.ErrForbidden): // Consul says so of a request without a token
		r.Anonymous, r.Empty = true, !write
	case err != nil && ctx.Err() != nil:
		return Rights{}, err
	}
	return r, nil // ACLs are off, or it is a registry of muster's own
}

// probe reads a key that does not exist, and fails to change it: that shows what is permitted.
func (l *connection) probe(ctx context.Context, key string) (read, write bool, err error) {
	if read, err = permits(l.do(ctx, "try to read a key", func(ctx context.Context) error {
		_, _, err := l.api.KV().Get(key, byDefault.options(ctx))
		return err
	})); err != nil {
		return false, false, err
	}
	write, err = permits(l.do(ctx, "try to write a key", func(ctx context.Context) error {
		// No key has this index, so that a registry which would write compares and does not.
		_, _, err := l.api.KV().CAS(&api.KVPair{Key: key, ModifyIndex: math.MaxInt64},
			(&api.WriteOptions{}).WithContext(ctx))
		return err
	}))
	return read, write, err
}

// trySession makes a session that holds nothing, and ends it.
func (l *connection) trySession(ctx context.Context) error {
	id, err := l.createSession(ctx, "muster doctor", api.SessionBehaviorDelete, "", leastTTL)
	if err != nil {
		return err
	}
	return l.destroySession(ctx, id)
}

// leastTTL is the shortest that a session may have (Consul).
const leastTTL = 10 * time.Second

func permits(err error) (bool, error) {
	if errors.Is(err, registry.ErrForbidden) {
		return false, nil
	}
	return err == nil, err
}
