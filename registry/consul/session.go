package consul

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/muster-agent/muster/registry"
)

// errSessionGone: the registry has ended the session.
var errSessionGone = errors.New("session has ended")

// sessionName is the name of a session: of the conductor, or of the agent of an instance.
func sessionName(app, who string) string { return "muster " + app + " " + who }

// SessionNode is the node of Consul's catalog on which the sessions of an app are made if an operator has registered
// it. Whoever may make sessions on a node may end all of that node, so an app with a node of its own is safe from the
// tokens of others.
func SessionNode(app string) string { return "muster-" + app }

// createSession makes a session without health checks: it lives as long as it is renewed, from any host. Its end
// deletes what it locks, or only releases it. An empty node is that of the Consul agent.
func (l *connection) createSession(
	ctx context.Context, name, behaviour, node string, ttl time.Duration,
) (string, error) {
	body := map[string]any{
		"Name": name, "TTL": ttl.String(), "Behavior": behaviour,
		"LockDelay":  "1ms",      // 0 would mean 15 s; the checks ensure correctness, not the delay
		"NodeChecks": []string{}, // else the session dies with the Consul agent through which it was made
	}
	if node != "" {
		body["Node"] = node
	}
	var out struct{ ID string }
	if err := l.put(ctx, callTime, "create session", "/v1/session/create", body, &out); err != nil {
		return "", err
	}
	return out.ID, nil
}

// renewSession returns errSessionGone if the registry no longer knows it.
func (l *connection) renewSession(ctx context.Context, id string, limit time.Duration) error {
	var out []*api.SessionEntry
	err := l.put(ctx, limit, "renew session", "/v1/session/renew/"+id, nil, &out)
	var status api.StatusError
	if errors.As(err, &status) && status.Code == http.StatusNotFound {
		return errSessionGone
	}
	return err
}

// sessions are all sessions of the registry that the token may see, read with consistency.
func (l *connection) sessions(ctx context.Context) (all []*api.SessionEntry, hidden bool, err error) {
	err = l.do(ctx, "list sessions", func(ctx context.Context) error {
		var meta *api.QueryMeta
		var err error
		if all, meta, err = l.api.Session().List(consistent.options(ctx)); err == nil {
			hidden = meta.ResultsFilteredByACLs
		}
		return err
	})
	return all, hidden, err
}

// Alive are the apps that an agent lives for: it has a session. Where the registry hides sessions from the token, the
// error is registry.ErrForbidden, as where it refuses to list them.
func (c *Client) Alive(ctx context.Context) (map[string]bool, error) {
	all, hidden, err := c.calls.sessions(ctx)
	if err != nil {
		return nil, err
	}
	if hidden {
		return nil, fmt.Errorf("list sessions: this token may not read all of them: %w", registry.ErrForbidden)
	}
	apps := map[string]bool{}
	for _, s := range all {
		if words := strings.Fields(s.Name); len(words) == 3 && words[0] == "muster" {
			apps[words[1]] = true
		}
	}
	return apps, nil
}

// destroySession deletes (or releases) at once what the session locks.
func (l *connection) destroySession(ctx context.Context, id string) error {
	return l.put(ctx, callTime, "destroy session", "/v1/session/destroy/"+id, nil, nil)
}
