package consul

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/muster-agent/muster/registry"
)

// callTime limits every request that does not block on purpose. A dead connection must not delay the renewals, which
// share it, until the session has ended. largeTime limits the reading of rosters and lists on the connection for them:
// a slow link may need that long for megabytes. Their answers must begin within callTime.
const (
	callTime  = 5 * time.Second
	largeTime = 30 * time.Second
)

// refusal is an answer 409: the registry did not do the transaction.
type refusal struct{ what []string }

func (r *refusal) Error() string { return "registry refused: " + strings.Join(r.what, "; ") }

func (r *refusal) has(s string) bool {
	for _, w := range r.what {
		if strings.Contains(w, s) {
			return true
		}
	}
	return false
}

// isRefusal tells whether the registry answered that it did not do a transaction.
func isRefusal(err error) bool {
	var r *refusal
	return errors.As(err, &r)
}

// isUnknown tells whether the result of a transaction is unknown.
func isUnknown(err error) bool { return errors.Is(err, registry.ErrUnreachable) }

// consistency of a read.
type consistency int

const (
	byDefault  consistency = iota
	consistent             // the leader asks a quorum: after an unknown result
	stale                  // any server answers: content-addressed keys only
)

func (c consistency) options(ctx context.Context) *api.QueryOptions {
	return (&api.QueryOptions{RequireConsistent: c == consistent, AllowStale: c == stale}).WithContext(ctx)
}

// named turns errors of the client library into conditions that callers know. before is connection.limited at the start
// of the request.
func (l *connection) named(ctx context.Context, act string, before int64, err error) error {
	err = l.condition(ctx, act, before, err)
	if errors.Is(err, registry.ErrUnreachable) || errors.Is(err, registry.ErrForbidden) ||
		errors.Is(err, registry.ErrTooManyConnections) {
		l.failed.Add(1)
	}
	return err
}

func (l *connection) condition(ctx context.Context, act string, before int64, err error) error {
	if err == nil {
		return nil
	}
	if status, ok := errors.AsType[api.StatusError](err); ok {
		body := strings.TrimSpace(status.Body)
		if strings.HasPrefix(body, "<") { // a page for a browser: it does not come from Consul
			body = "a page for a browser"
		}
		status.Body = body
		switch {
		case status.Code == http.StatusForbidden:
			return fmt.Errorf("%s: %w: %s", act, registry.ErrForbidden, body)
		case status.Code == http.StatusTooManyRequests:
			return fmt.Errorf("%s: %w", act, registry.ErrTooManyConnections)
		case status.Code == http.StatusBadRequest, status.Code == http.StatusRequestEntityTooLarge:
			return fmt.Errorf("%s: %w: %d %s", act, registry.ErrMalformed, status.Code, body)
		case status.Code >= http.StatusInternalServerError:
			return fmt.Errorf("%s: %w: %d %s", act, registry.ErrUnreachable, status.Code, body)
		}
		return fmt.Errorf("%s: %w", act, status)
	}
	if l.limited.Load() != before {
		return fmt.Errorf("%s: %w", act, registry.ErrTooManyConnections)
	}
	if cause := context.Cause(ctx); cause != nil {
		return fmt.Errorf("%s: %w", act, cause)
	}
	return fmt.Errorf("%s: %w: %w", act, registry.ErrUnreachable, err)
}

// do runs one request within callTime.
func (l *connection) do(ctx context.Context, act string, request func(context.Context) error) error {
	return l.within(ctx, callTime, act, request)
}

func (l *connection) within(
	ctx context.Context, limit time.Duration, act string, request func(context.Context) error,
) error {
	before := l.limited.Load()
	timed, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return l.named(ctx, act, before, request(timed))
}

// get reads one key; nil when it does not exist.
func (l *connection) get(ctx context.Context, key string, c consistency) (*api.KVPair, error) {
	var pair *api.KVPair
	err := l.do(ctx, "read "+key, func(ctx context.Context) (err error) {
		pair, _, err = l.api.KV().Get(key, c.options(ctx))
		return err
	})
	return pair, err
}

// list reads all keys under a prefix with their values.
func (l *connection) list(ctx context.Context, prefix string, c consistency) (api.KVPairs, error) {
	var pairs api.KVPairs
	err := l.within(ctx, l.large, "read "+prefix, func(ctx context.Context) (err error) {
		pairs, _, err = l.api.KV().List(prefix, c.options(ctx))
		return err
	})
	return pairs, err
}

// names lists the keys under a prefix, with consistency, because keys that are missing count; 404 is an empty list.
func (l *connection) names(ctx context.Context, prefix, separator string) ([]string, error) {
	var names []string
	err := l.within(ctx, l.large, "list "+prefix, func(ctx context.Context) (err error) {
		names, _, err = l.api.KV().Keys(prefix, separator, consistent.options(ctx))
		return err
	})
	return names, err
}

// raw reads the bytes of a key; nil when it does not exist.
func (l *connection) raw(ctx context.Context, key string, c consistency) ([]byte, error) {
	var body []byte
	err := l.within(ctx, l.large, "read "+key, func(ctx context.Context) (err error) {
		body, err = l.plain(ctx, http.MethodGet, "/v1/kv/"+key+"?raw"+c.query("&"), nil)
		if status, ok := errors.AsType[api.StatusError](err); ok && status.Code == http.StatusNotFound {
			err = nil
		}
		return err
	})
	return body, err
}

// query is the consistency as a part of a URL, after a separator.
func (c consistency) query(separator string) string {
	switch c {
	case consistent:
		return separator + "consistent"
	case stale:
		return separator + "stale"
	case byDefault:
	}
	return ""
}

// plain makes a request for which the client library has no method, or none that returns the status.
func (l *connection) plain(ctx context.Context, method, target string, body io.Reader) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, l.base+target, body)
	if err != nil {
		return nil, err
	}
	if method == http.MethodGet { // raw bytes that are packed already: Consul would pack them again for each reader
		req.Header.Set("Accept-Encoding", "identity")
	}
	resp, err := l.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		return nil, api.StatusError{Code: resp.StatusCode, Body: string(answer)}
	}
	return answer, nil
}

// put sends a PUT with a JSON body and decodes the answer.
func (l *connection) put(ctx context.Context, limit time.Duration, act, endpoint string, in, out any) error {
	return l.within(ctx, limit, act, func(ctx context.Context) error {
		_, err := l.api.Raw().Write(endpoint, in, out, (&api.WriteOptions{}).WithContext(ctx))
		return err
	})
}
