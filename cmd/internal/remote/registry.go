package remote

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"time"

	"github.com/muster-agent/muster/cmd/internal/apps"
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/registry/consul"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/status"
	"github.com/muster-agent/muster/shim/wait"
)

// Address is the registry whose apps the page shows.
func (c *client) Address(ctx context.Context) (registry.Address, error) {
	m, err := c.me(ctx)
	return m.Registry, err
}

// MayAct refuses a user who may look only.
func (c *client) MayAct(ctx context.Context) error {
	m, err := c.me(ctx)
	if err != nil || m.Act {
		return err
	}
	return c.failed(exit.Forbidden, registry.ErrForbidden, "%s may look at apps, and not act on them; its operator "+
		"gives that right with muster ui token --act", cmp.Or(m.User, "this user"))
}

// listPatience bounds the listing of all apps: the page may have to read each.
const listPatience = time.Minute

// All are the apps that the page shows, and what is left out.
func (c *client) All(ctx context.Context) (all apps.Listing, err error) {
	err = c.call(ctx, listPatience, http.MethodGet, c.path("apps"), nil, &all)
	return all, err
}

// Status is the registry's word on one app. The error is registry.ErrNoApp when there is none.
func (c *client) Status(ctx context.Context, app string) (consul.Status, error) {
	var w word
	err := c.call(ctx, apps.Patience, http.MethodGet, c.path("apps", app, "registry"), nil, &w)
	return w.status(app), err
}

// Definition is what the app was made of.
func (c *client) Definition(ctx context.Context, app string, _ registry.AppRecord) (string, error) {
	var d definition
	err := c.call(ctx, apps.Patience, http.MethodGet, c.path("apps", app, "definition"), nil, &d)
	return d.Definition, err
}

// States are what the agents say that answer the page, by instance.
func (c *client) States(ctx context.Context, app string) (map[string]status.State, error) {
	var all States
	err := c.call(ctx, apps.Patience, http.MethodGet, c.path("apps", app, "states"), nil, &all)
	found := map[string]status.State{}
	for _, st := range all.States {
		found[st.Instance.Instance] = st
	}
	return found, err
}

// Verdict is that of a run, nil while there is none; run empty: of the current run.
func (c *client) Verdict(ctx context.Context, app, run string) (*registry.Verdict, error) {
	to := c.path("apps", app, "verdict")
	to.RawQuery = url.Values{"run": {run}}.Encode()
	var v Verdict
	err := c.call(ctx, apps.Patience, http.MethodGet, to, nil, &v)
	return v.Verdict, err
}

// WaitVerdict waits until the run has a verdict, and for a page that does not answer.
func (c *client) WaitVerdict(ctx context.Context, app, run string) (v registry.Verdict, err error) {
	over := wait.Until(ctx, func() bool {
		var found *registry.Verdict
		found, err = c.Verdict(ctx, app, run)
		if found != nil {
			v = *found
		}
		return found != nil || err != nil && !errors.Is(err, registry.ErrUnreachable)
	})
	if !over {
		err = ctx.Err()
	}
	return v, err
}

// Ask has the page ask the conductor, in this user's name.
func (c *client) Ask(ctx context.Context, app string, ask registry.Ask) error {
	if err := c.MayAct(ctx); err != nil { // it says who may give the right
		return err
	}
	return c.call(ctx, apps.Patience, http.MethodPost, c.path("apps", app, "asks"), ask, &Asked{})
}

// AskAgain is Ask where the registry has lost the request.
func (c *client) AskAgain(ctx context.Context, app string, ask registry.Ask) (again bool, err error) {
	to := c.path("apps", app, "asks")
	to.RawQuery = "again=true"
	var a Asked
	err = c.call(ctx, apps.Patience, http.MethodPost, to, ask, &a)
	return a.Asked, err
}

// Agent is the API of an instance's agent, through the page.
func (c *client) Agent(app, instance string) *status.Client {
	to := c.path("apps", app, "instances", instance, "agent").String()
	return status.Through(to, app+"/"+instance+" through "+c.base.String(), c.http)
}
