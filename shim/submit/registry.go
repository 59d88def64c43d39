package submit

import (
	"context"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/registry/consul"
	"github.com/muster-agent/muster/shim/status"
)

// Registry is what a submission asks about runs: the registry of its job, and the agents that can be reached from here.
type Registry interface {
	// Status is how an app stands; registry.ErrNoApp where the registry has not heard of it.
	Status(ctx context.Context, app string) (consul.Status, error)
	// Complete reads a definition that stands apart from its app's record.
	Complete(ctx context.Context, st *consul.Status)
	// Verdict is that of a run, nil while there is none.
	Verdict(ctx context.Context, app, run string) (*registry.Verdict, error)
	// Ask asks the conductor of an app for something.
	Ask(ctx context.Context, app string, ask registry.Ask) error
	// Agents are the states of those members whose agents can be asked from here.
	Agents(ctx context.Context, app string, members []consul.MemberStatus, token string) map[string]status.State
	// View is an app's instances as muster status shows them.
	View(app string, st *consul.Status) View
	// Error gives a refusal or the silence of the registry its exit code.
	Error(err error) error
}

// View is an app's instances as muster status shows them.
type View struct {
	Instances []status.Instance
	Missing   []string
	Verdict   *registry.Verdict
}

// definition is the App that the registry keeps; one that cannot be read says nothing.
func definition(record registry.AppRecord) appdef.App {
	app, err := appdef.Decode(record.Def)
	if err != nil {
		return appdef.App{}
	}
	return app
}
