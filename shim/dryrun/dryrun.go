package dryrun

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/frameworks"
	"github.com/muster-agent/muster/shim/hadoop"
	"github.com/muster-agent/muster/shim/launcher"
	"github.com/muster-agent/muster/shim/launcher/known"
	"github.com/muster-agent/muster/shim/mask"
	"github.com/muster-agent/muster/shim/member"
	"github.com/muster-agent/muster/shim/openapp"
	"github.com/muster-agent/muster/shim/plan"
	"github.com/muster-agent/muster/shim/policy"
	"github.com/muster-agent/muster/shim/prepare"
	"github.com/muster-agent/muster/shim/status"
)

// ExampleRoster is the Roster of Options that invents one.
const ExampleRoster = "example"

// Options say whose plans are wanted, and what differs from this environment.
type Options struct {
	AppID      string // empty: the launcher's, else unknown
	Component  string // empty: all of them
	Index      int
	All        bool          // all instances, not only the first of each component
	Host       string        // address in place of this host's
	KillWindow time.Duration // in place of the launcher's
	Allocation string        // JSON file in place of what the launcher grants
	Engine     string        // auto, or the one that must be used
	Policy     policy.Policy
	WorkDir    string // of an agent; empty: the launcher's, else the user's
	Roster     string // JSON file, or ExampleRoster: adds the start; empty: none
	DefaultFS  string // URI; empty: as Hadoop's configuration has it
	Hadoop     hadoop.Login
}

// Planner builds the plans of one app.
type Planner struct {
	options Options
	app     appdef.App
	request plan.Request
	// launcher is what is known of it, for the reader of a plan.
	launcher *plan.Launcher
	hidden   mask.Set
	// container is what an agent would have: it judges the plans.
	container prepare.Config
}

// New finds out what all plans of the app share.
func New(ctx context.Context, l *openapp.App, o Options) (*Planner, error) {
	engine, err := prepare.ChooseEngine(ctx, o.Engine, &l.App)
	if err != nil {
		return nil, err
	}
	p := &Planner{options: o, app: l.App, request: plan.Request{
		AppID: o.AppID, Run: "1", Digest: appdef.DigestIn(l.App, registry.Spoken().Min),
		Component: o.Component, Index: o.Index,
		HostFacts: plan.HostFacts{
			Shell: prepare.Shell(), HostRoot: prepare.RootOfHost(), MemoryMB: prepare.HostMemoryMB(),
		},
		Engine: prepare.EngineChoice(engine, o.Policy),
	}, container: prepare.Config{Log: slog.New(slog.DiscardHandler), App: l, Engine: engine, Policy: o.Policy}}
	if err := p.surround(ctx); err != nil {
		return nil, err
	}
	p.request.Allocation.Vars = l.ClientVars()
	filesystem, _, err := hadoop.FindDefaultFS(o.DefaultFS, o.Hadoop) // an agent reports the warning
	if err != nil {
		return nil, err
	}
	filesystem.Into(&p.request)
	p.container.DefaultFS = filesystem
	p.request.Hadoop = hadoop.FindFacts(o.Hadoop.Dir(), o.Hadoop, launcher.Inherit(os.Environ(), nil))
	p.origins()
	p.hidden.AddNamed(l.App.Config)
	for _, c := range l.App.Components {
		p.hidden.AddNamed(c.Config)
		p.hidden.AddNamed(c.Settings.Env)
	}
	return p, nil
}

// Hide is a text about the plans without the values that the definition's names say are secret.
func (p *Planner) Hide(text string) string { return p.hidden.Hide(text) }

// surround adds what the launcher grants: in this environment, or in a file.
func (p *Planner) surround(ctx context.Context) error {
	o := p.options
	found, host := member.Surroundings(ctx)
	if o.Allocation != "" {
		found = launcher.Found{Index: -1, Rank: -1, Origins: map[string]string{}}
		if err := readStrict(o.Allocation, &found.Allocation); err != nil {
			return err
		}
		found.Name = launcher.Name(found.Allocation.Launcher)
		host = launcher.Host{Address: found.Allocation.Host, Origin: o.Allocation}
		found.Origins["kill_window"] = o.Allocation
	}
	if o.Host != "" {
		host = launcher.Host{Address: o.Host, Origin: "--host"}
	}
	if found.Allocation.Host != "" || o.Host != "" { // a plan made in a shell is the same on all hosts
		found.Allocation.Host, found.Origins["host"] = host.Address, host.Origin
	}
	if o.KillWindow > 0 {
		found.Allocation.KillWindow, found.Origins["kill_window"] = o.KillWindow.Seconds(), "--kill-window"
	}
	p.launcher = new(known.Describe(found, host))
	p.request.Allocation, p.request.Origins = found.Allocation, found.Origins
	if o.Allocation != "" && o.Host == "" && o.KillWindow == 0 { // the plan itself prints the file's values
		p.request.Origins = map[string]string{}
	}
	if p.request.AppID == "" {
		p.request.AppID = found.AppID
	}
	return p.folders(found)
}

// origins names the flags that chose the instance: the container that this command runs in may be another's.
func (p *Planner) origins() {
	from := p.request.Origins
	delete(from, "component")
	delete(from, "index")
	if p.options.Component != "" {
		from["component"], from["index"] = "--component", "--index"
	}
	if p.options.AppID != "" {
		from["app_id"] = "--app-id"
	}
}

// One is the plan of the instance that Options name.
func (p *Planner) One(ctx context.Context) (plan.Plan, error) {
	one, err := p.plan(ctx, p.request)
	one.Launcher = p.launcher
	return one, err
}

// List are the plans of all instances that Options name.
func (p *Planner) List(ctx context.Context) (plan.List, error) {
	list := plan.List{Version: plan.Version, Plans: []plan.Plan{}, Launcher: p.launcher}
	var refused error // of all components: none hides another
	for _, in := range plan.Instances(&p.app) {
		if !p.options.All && in.Index > 0 || p.options.Component != "" && in.Component != p.options.Component {
			continue
		}
		request := p.request
		request.Component, request.Index = in.Component, in.Index
		one, err := p.plan(ctx, request)
		if err != nil && !errors.As(err, new(refusal)) {
			return list, err
		}
		refused = errors.Join(refused, err)
		list.Plans = append(list.Plans, one)
	}
	if refused != nil {
		return list, refused
	}
	if p.options.Component != "" && p.app.Component(p.options.Component) == nil {
		_, problems := plan.Build(p.app, p.request)
		return list, exit.OfProblems(problems)
	}
	return list, nil
}

func (p *Planner) plan(ctx context.Context, request plan.Request) (plan.Plan, error) {
	one, problems := plan.Build(p.app, request)
	bad := exit.OfProblems(problems)
	if bad == nil {
		bad = p.permitted(ctx, request, one)
	}
	one.Process.Env = mask.Values(one.Process.Env) // here, because Hide leaves short values
	if bad != nil || p.options.Roster == "" {
		return one, bad
	}
	roster, err := p.roster(request)
	if err != nil {
		return one, err
	}
	start, problems := plan.Finish(one, roster, startFacts(one, roster), frameworks.Env)
	start.Env = mask.Values(start.Env)
	one.Start = &start
	return one, exit.OfProblems(problems)
}

func (p *Planner) roster(request plan.Request) (registry.Roster, error) {
	if p.options.Roster == ExampleRoster {
		return plan.ExampleRoster(p.app, request), nil
	}
	var r registry.Roster
	if err := status.ReadJSON(p.options.Roster, &r); err != nil {
		return r, exit.With(exit.Usage, fmt.Errorf("roster: %w; want a file, or the word example", err))
	}
	return r, nil
}

// startFacts are those of a first start in the roster's generation.
func startFacts(p plan.Plan, r registry.Roster) plan.StartFacts {
	in := registry.Instance{Component: p.Who.Component, Index: p.Who.Index}
	facts := plan.StartFacts{
		Generation: max(1, r.Gen), Attempt: 1, Secrets: map[string]string{},
		StatusSocket: "${STATE}/apps/" + p.App.ID + "/" + in.String() + ".sock",
	}
	for _, name := range p.Process.Secrets {
		facts.Secrets[name] = mask.Shown
	}
	for _, row := range r.Rows {
		if row.Instance == in {
			facts.Host, facts.Ports = rowHost(row), row.Ports
		}
	}
	return facts
}

// rowHost is the host of a row's host:port.
func rowHost(row registry.Row) string {
	if at := strings.LastIndexByte(row.Addr, ':'); at > 0 {
		return row.Addr[:at]
	}
	return row.Addr
}

// readStrict reads a JSON file that a person wrote: an unknown field is a slip.
func readStrict(path string, into any) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return exit.With(exit.Usage, err)
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return exit.With(exit.Usage, fmt.Errorf("read %s: %w", path, err))
	}
	return nil
}
