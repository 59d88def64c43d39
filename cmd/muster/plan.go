package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/cmd/internal/console"
	"github.com/muster-agent/muster/cmd/internal/flags"
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/frameworks"
	"github.com/muster-agent/muster/shim/hadoop"
	"github.com/muster-agent/muster/shim/launcher"
	"github.com/muster-agent/muster/shim/launcher/known"
	"github.com/muster-agent/muster/shim/member"
	"github.com/muster-agent/muster/shim/openapp"
	"github.com/muster-agent/muster/shim/plan"
	"github.com/muster-agent/muster/shim/prepare"
	"github.com/muster-agent/muster/shim/status"
)

// exampleRoster is the value of --roster that invents one.
const exampleRoster = "example"

type planFlags struct {
	app        flags.App
	ref        string
	appID      string
	component  string
	index      int
	host       string
	kill       time.Duration
	all        bool
	allocation string
	roster     string
	engine     string
	filesystem flags.Filesystem

	known *plan.Launcher // what is known of the launcher
}

func newPlan(s console.Streams) *cobra.Command {
	f := planFlags{}
	cmd := &cobra.Command{
		Use: "plan [APP]", Short: "Print what an agent would do, as JSON, without doing it", Args: atMost("APP"),
		Long: `Prints the plan of one instance (--component, --index), or {plans: […]}: of the first instance of
each component, of every instance with --all. Paths stand as ${WORK}, ${LOG} and ${STATE}; ports that
nobody has claimed yet are 0. --allocation FILE takes what a launcher would grant from a file instead
of this environment. --roster adds the environment and files of the start. APP may also be given as
agents have it, by --app. launcher is what is known of who started this: every value with where it came
from, how it is told what an agent's end means, and what outlives a restart that it makes.`,
		Example: `  muster plan catalog:tensorflow --component worker --index 1
  muster plan catalog:handwriting --all --roster example`,
		ValidArgsFunction: completeApp,
		RunE: func(cmd *cobra.Command, args []string) error {
			ref := firstOf(args)
			if ref == "" {
				ref = f.ref
			}
			if ref == "" {
				return exit.Usagef("plan: got 0 arguments, want APP, or --app")
			}
			return f.plan(cmd.Context(), s, ref)
		},
	}
	flags := cmd.Flags()
	f.app.Register(flags)
	f.filesystem.Register(flags)
	flags.StringVar(&f.ref, "app", "", "APP, as agents are given it")
	flags.StringVar(&f.appID, "app-id", "", "name of the gang (default: the launcher's word, else -)")
	flags.StringVar(&f.host, "host", "", "address that peers would reach this host at")
	flags.DurationVar(&f.kill, "kill-window", 0, "time between the launcher's TERM and its KILL (default: the "+
		"launcher's usual)")
	flags.StringVar(&f.component, "component", "", "plan of this component only")
	flags.IntVar(&f.index, "index", 0, "index within the component")
	flags.BoolVar(&f.all, "all", false, "plans of all instances")
	flags.StringVar(&f.allocation, "allocation", "",
		"JSON `FILE` {launcher, host, ports, devices, envelope, kill_window} in place of what this environment says")
	flags.StringVar(&f.engine, "engine", "auto",
		"how the process would be confined: auto, container, cgroup or process")
	flags.StringVar(&f.roster, "roster", "", "JSON `FILE` of a roster, or example: also print the start")
	completeFlag(cmd, "app", completeAppFlag)
	completeFlag(cmd, "component", completeComponents(&f.app, firstOf))
	return cmd
}

func (f *planFlags) plan(ctx context.Context, s console.Streams, ref string) error {
	switch {
	case f.index != 0 && f.component == "":
		return exit.Usagef("plan: --index %d without --component", f.index)
	case f.all && f.index != 0:
		return exit.Usagef("plan: --index and --all: want one of them")
	}
	if f.appID != "" {
		if err := appdef.CheckName("plan: --app-id", f.appID); err != nil {
			return exit.With(exit.Usage, err)
		}
	}
	f.app.Hadoop = f.filesystem.Hadoop.Login
	l, found, err := f.app.Read(ctx, ref)
	if err != nil {
		return err
	}
	defer l.Close()
	if bad := exit.OfProblems(found); bad != nil { // warnings are in the plan
		return bad
	}
	request, err := f.request(ctx, l)
	if err != nil {
		return err
	}
	if f.component != "" && !f.all {
		one, err := f.one(l.App, request)
		if err != nil {
			return err
		}
		one.Launcher = f.known
		return f.print(s, one.JSON())
	}
	list, err := f.list(l.App, request)
	if err != nil {
		return err
	}
	return f.print(s, list.JSON())
}

func (f *planFlags) print(s console.Streams, text []byte) error {
	if _, err := s.Out.Write(text); err != nil {
		return exit.With(exit.Internal, fmt.Errorf("print: %w", err))
	}
	return nil
}

// request is what all plans of this call share.
func (f *planFlags) request(ctx context.Context, l *openapp.App) (plan.Request, error) {
	engine, err := prepare.ChooseEngine(ctx, f.engine, &l.App)
	if err != nil {
		return plan.Request{}, err
	}
	r := plan.Request{
		AppID: f.appID, Run: "1", Digest: appdef.Digest(l.App), Component: f.component, Index: f.index,
		HostFacts: plan.HostFacts{Shell: prepare.Shell()}, Engine: prepare.EngineChoice(engine),
	}
	if err := f.surround(ctx, &r); err != nil {
		return r, err
	}
	r.Allocation.Vars = l.ClientVars()
	// Whose plan it is, the command line says, not the container that this happens to run in.
	for _, what := range []string{"component", "index"} {
		delete(r.Origins, what)
	}
	filesystem, _, err := f.filesystem.Resolve() // an agent tells of a warning
	if err != nil {
		return r, err
	}
	filesystem.Into(&r)
	r.Hadoop = hadoop.FindFacts(f.filesystem.Hadoop.Dir(), launcher.Inherit(os.Environ(), nil))
	if f.component != "" {
		r.Origins["component"], r.Origins["index"] = "--component", "--index"
	}
	if f.appID != "" {
		r.Origins["app_id"] = "--app-id"
	}
	return r, nil
}

// surround adds what the launcher says: this environment's, or a file's.
func (f *planFlags) surround(ctx context.Context, r *plan.Request) error {
	found, host := member.Surroundings(ctx)
	if f.allocation != "" {
		found = launcher.Found{Index: -1, Rank: -1, Origins: map[string]string{}}
		if err := readStrict(f.allocation, &found.Allocation); err != nil {
			return err
		}
		found.Name = launcher.Name(found.Allocation.Launcher)
		host = launcher.Host{Address: found.Allocation.Host, Origin: f.allocation}
		found.Origins["kill_window"] = f.allocation
	}
	if f.host != "" {
		host = launcher.Host{Address: f.host, Origin: "--host"}
	}
	if found.Allocation.Host != "" || f.host != "" { // a shell's plan is the same on all hosts
		found.Allocation.Host, found.Origins["host"] = host.Address, host.Origin
	}
	if f.kill > 0 {
		found.Allocation.KillWindow, found.Origins["kill_window"] = f.kill.Seconds(), "--kill-window"
	}
	f.known = new(known.Describe(found, host))
	r.Allocation, r.Origins = found.Allocation, found.Origins
	if f.allocation != "" && f.host == "" && f.kill == 0 { // the file's values are told by the plan itself
		r.Origins = map[string]string{}
	}
	if r.AppID == "" {
		r.AppID = found.AppID
	}
	return nil
}

func (f *planFlags) list(app appdef.App, request plan.Request) (plan.List, error) {
	list := plan.List{Version: plan.Version, Plans: []plan.Plan{}, Launcher: f.known}
	for _, in := range plan.Instances(&app) {
		if !f.all && in.Index > 0 || f.component != "" && in.Component != f.component {
			continue
		}
		request.Component, request.Index = in.Component, in.Index
		p, err := f.one(app, request)
		if err != nil {
			return list, err
		}
		list.Plans = append(list.Plans, p)
	}
	if f.component != "" && app.Component(f.component) == nil {
		_, problems := plan.Build(app, request)
		return list, exit.OfProblems(problems)
	}
	return list, nil
}

func (f *planFlags) one(app appdef.App, request plan.Request) (plan.Plan, error) {
	p, problems := plan.Build(app, request)
	if bad := exit.OfProblems(problems); bad != nil {
		return p, bad
	}
	if f.roster == "" {
		return p, nil
	}
	roster, err := f.readRoster(app, request)
	if err != nil {
		return p, err
	}
	start, problems := plan.Finish(p, roster, startFacts(p, roster), frameworks.Env)
	p.Start = &start
	return p, exit.OfProblems(problems)
}

func (f *planFlags) readRoster(app appdef.App, request plan.Request) (registry.Roster, error) {
	if f.roster == exampleRoster {
		return plan.ExampleRoster(app, request), nil
	}
	var r registry.Roster
	if err := status.ReadJSON(f.roster, &r); err != nil {
		return r, exit.With(exit.Usage, fmt.Errorf("roster: %w; want a file, or the word example", err))
	}
	return r, nil
}

// startFacts are those of a first start in the roster's generation.
func startFacts(p plan.Plan, r registry.Roster) plan.StartFacts {
	in := registry.Instance{Component: p.Who.Component, Index: p.Who.Index}
	facts := plan.StartFacts{
		Generation: max(1, r.Gen), Attempt: 1, StatusSocket: "${STATE}/apps/" + p.App.ID + "/" + in.String() + ".sock",
		Secrets: map[string]string{},
	}
	for _, name := range p.Process.Secrets {
		facts.Secrets[name] = "(secret)"
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
