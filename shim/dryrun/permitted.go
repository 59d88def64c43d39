package dryrun

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/fault"
	"github.com/muster-agent/muster/shim/launcher"
	"github.com/muster-agent/muster/shim/plan"
	"github.com/muster-agent/muster/shim/prepare"
	"github.com/muster-agent/muster/shim/secret"
	"github.com/muster-agent/muster/shim/status"
)

// refusal is what this host does not permit an agent.
type refusal struct{ error }

func (r refusal) Unwrap() error { return r.error }

// folders are where an agent would work.
func (p *Planner) folders(found launcher.Found) error {
	work := cmp.Or(p.options.WorkDir, found.WorkDir)
	if work == "" {
		var err error
		if work, err = status.DefaultWorkDir(cmp.Or(p.request.AppID, "-")); err != nil {
			return exit.With(exit.Forbidden, err)
		}
	}
	work, err := filepath.Abs(work)
	if err != nil {
		return exit.With(exit.Forbidden, err)
	}
	c := &p.container
	c.WorkDir, c.LogDir = work, filepath.Join(work, "log")
	if found.Origins["user"] != "" {
		c.Submitter = found.Allocation.User
	}
	return nil
}

// permitted refuses a plan that this host would refuse an agent, with the agent's exit code. Nothing is taken or
// fetched for it.
func (p *Planner) permitted(ctx context.Context, request plan.Request, one plan.Plan) error {
	one = plan.Resolve(one, plan.Dirs{Work: p.container.WorkDir, Log: p.container.LogDir})
	err := p.judge(ctx, request, one)
	class := fault.ClassOf(err)
	if class != registry.ClassNotPermitted && class != registry.ClassDefinition {
		return nil // what is merely missing may be there at the start
	}
	code := exit.Forbidden
	if class == registry.ClassDefinition {
		code = exit.Definition
	}
	return exit.With(code, refusal{fmt.Errorf("%s: %w", one.Who.Component, err)})
}

func (p *Planner) judge(ctx context.Context, request plan.Request, one plan.Plan) error {
	ids := prepare.MakesIDs(p.container.Policy)
	if one.Root.Kind != plan.RootImage { // an image's users are known once it is pulled
		as := p.container
		if ids && one.Root.Kind != plan.RootOverlay {
			// An app's ids are taken at its start. Whom of the host the policy admits does not depend on them.
			as.Policy.Userns = "host"
		}
		c := prepare.New(as)
		defer c.Close()
		if _, err := c.Plan(ctx, request); err != nil {
			return err
		}
		if u := c.User(); !ids || u != nil && u.UID != 0 {
			return c.Permitted(one)
		}
	}
	// What the process may read depends on its ids.
	secrets := secret.Source{Policy: p.container.Policy, File: func(string) (string, error) { return "", nil }}
	for _, name := range slices.Sorted(maps.Keys(one.Process.SecretRefs)) {
		_, err := secrets.Read(map[string]string{name: one.Process.SecretRefs[name]})
		if fault.Is(err, registry.ClassNotPermitted) {
			return err
		}
	}
	return prepare.New(p.container).Places(one)
}
