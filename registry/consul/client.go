package consul

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/muster-agent/muster/registry"
)

// Config is which registry to use, with what rights and times.
type Config struct {
	// Address is where it listens. TLS takes its certificates from CONSUL_CACERT, CONSUL_CAPATH,
	// CONSUL_CLIENT_CERT, CONSUL_CLIENT_KEY, CONSUL_TLS_SERVER_NAME and CONSUL_HTTP_SSL_VERIFY.
	Address registry.Address
	// Token is the ACL token; empty: CONSUL_HTTP_TOKEN_FILE, which is read again when the registry refuses the token,
	// then CONSUL_HTTP_TOKEN.
	Token string
	// Times are the protocol's; zero times are those of registry.DefaultTimes.
	Times  registry.Times
	Logger *slog.Logger // nil: no log
}

// Client talks to one registry for one agent or one command. It is safe for concurrent use. Close it.
type Client struct {
	times registry.Times
	log   *slog.Logger

	calls *connection // renewals, and all requests whose answers are small
	bulk  *connection // what grows with the gang: large rosters, all checkpoints, what a conductor reads and writes
	watch *connection // the blocking read of the directive
	ready *connection // conductor: the blocking read of the ready keys
	asks  *connection // conductor: the blocking read of the asks
}

// Open makes a client. It does not connect yet: Ping does.
func Open(c Config) (*Client, error) {
	if c.Address.IsZero() {
		return nil, errors.New("open a registry: no address")
	}
	client := &Client{times: c.Times.OrDefaults(), log: c.Logger}
	if client.log == nil {
		client.log = slog.New(slog.DiscardHandler)
	}
	t, err := newToken(c.Token)
	if err != nil {
		return nil, err
	}
	for _, l := range []**connection{&client.calls, &client.watch, &client.ready, &client.asks} {
		if *l, err = connect(c.Address, t); err != nil {
			return nil, err
		}
	}
	client.bulk, err = connectBulk(c.Address, t)
	return client, err
}

// Close closes the connections. All memberships must have been closed before.
func (c *Client) Close() {
	for _, l := range []*connection{c.calls, c.bulk, c.watch, c.ready, c.asks} {
		l.close()
	}
}

// Failed is how many requests the registry has not answered, or has refused for rights or rate.
func (c *Client) Failed() int64 {
	var n int64
	for _, l := range []*connection{c.calls, c.bulk, c.watch, c.ready, c.asks} {
		n += l.failed.Load()
	}
	return n
}

// Ping checks that the registry answers, has a leader and knows the token. The token's rights show later. The error is
// registry.ErrUnreachable, ErrForbidden or ErrTooManyConnections.
func (c *Client) Ping(ctx context.Context) error {
	var leader string
	err := c.calls.do(ctx, "ask for the leader", func(ctx context.Context) (err error) {
		leader, err = c.calls.api.Status().LeaderWithQueryOptions(byDefault.options(ctx))
		return err
	})
	if err != nil {
		return err
	}
	if leader == "" {
		return fmt.Errorf("registry has no leader: %w", registry.ErrUnreachable)
	}
	// Renewing a session that does not exist shows whether the token exists, whatever its rights are.
	if err := c.calls.renewSession(ctx, noSession, callTime); !errors.Is(err, errSessionGone) {
		return err
	}
	return nil
}

const noSession = "00000000-0000-0000-0000-000000000000"

// encode is the JSON of a record. Records of package registry always have one.
func encode(v any) []byte {
	b, err := registry.Encode(v)
	if err != nil {
		panic("registry record without JSON: " + err.Error())
	}
	return b
}

// decode reads a record; the key names it in the error.
func decode[T any](key string, value []byte) (T, error) {
	v, err := registry.Decode[T](value)
	if err != nil {
		return v, fmt.Errorf("read %s: %w", key, err)
	}
	return v, nil
}
