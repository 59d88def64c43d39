package plan

import (
	"slices"
	"strconv"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/registry/conductor"
)

// Version is that of the plan's JSON.
const Version = 1

// Build plans one instance: it turns an App and what was granted into everything that one agent will do. The problems
// are those of the definition under these circumstances; with a problem of severity error there is no plan to run.
// Warnings are in the plan. The same arguments give the same plan.
func Build(app appdef.App, req Request) (Plan, appdef.Problems) {
	app = app.WithCounts(req.Instances)
	b := builder{app: &app, req: req}
	if !b.find() {
		return Plan{}, b.problems
	}
	if b.req.Digest == "" {
		b.req.Digest = appdef.DigestIn(app, registry.Spoken().Min)
	}
	b.scope = req.scope(&app, portTexts(&app, req.Component, req.Index))
	b.ports = b.grantedPorts()
	p := b.plan()
	p.Warnings = append(appdef.Problems{}, append(app.Warnings.Warnings(), b.warnings...).Sort()...)
	return p, b.problems.Sort()
}

// find looks the instance up. The command line names the instance, so problems point to the command line.
func (b *builder) find() bool {
	asked := appdef.Place{File: "command line", Pointer: ""}
	b.position = slices.IndexFunc(b.app.Components, func(c appdef.Component) bool { return c.Name == b.req.Component })
	if b.position < 0 {
		p := asked.Problem("component "+appdef.Quote(b.req.Component), "one of "+list(b.app.ComponentNames()), "")
		p.Usage = true
		b.problems = append(b.problems, p)
		return false
	}
	b.component = &b.app.Components[b.position]
	if n := b.component.Instances; b.req.Index < 0 || b.req.Index >= n {
		p := asked.Problem("index "+strconv.Itoa(b.req.Index)+" of "+b.req.Component,
			"0 to "+strconv.Itoa(n-1), "give --instances "+b.req.Component+"=N for more")
		if n == 0 {
			p.Want = "a component with instances"
		}
		if b.component.Category == "CLIENT" {
			p.Hint = "a CLIENT is installed, not run"
		}
		p.Usage = true
		b.problems = append(b.problems, p)
		return false
	}
	return true
}

// silence is how long a component may show no sign of life. What serves others has nothing to say for hours.
func silence(role appdef.Role, t appdef.TimeSettings) appdef.Seconds {
	switch {
	case t.Silence != 0:
		return max(0, t.Silence)
	case role == appdef.RoleService, role == appdef.RolePS:
		return 0
	}
	return 600
}

func (b *builder) plan() Plan {
	s := b.component.Settings
	rank, world := rankOf(b.app, b.req.Component, b.req.Index)
	limits := b.limits()
	p := Plan{
		Version: Version,
		App:     AppPart{ID: b.req.appID(), Name: b.app.Name, Digest: b.req.Digest, Dialect: b.app.Dialect},
		Who: Who{
			Component: b.req.Component, Index: b.req.Index, Rank: rank, Role: string(s.Role), WorldSize: world,
		},
		Allocation: b.allocation(),
		Engine:     b.engine(limits),
		Root:       b.root(),
		Script:     b.script(),
		Training: Training{
			Framework: b.app.Settings.Framework, Mode: b.app.Settings.TensorFlowMode, Processes: b.processes(),
			MPI: b.mpi(), PAI: b.pai(), HBox: b.hbox(),
		},
		Data:   Data{Hadoop: b.hadoop(), Inputs: b.inputs(), Outputs: b.outputs()},
		Limits: limits,
		Network: Network{
			Ports: b.ports, Peers: peersOf(b.app, b.component.Name), Exports: b.exports(),
			Login:      b.login(),
			AppExports: b.appExports(),
		},
		Lifecycle: Lifecycle{
			Barrier: b.barrier(), Restart: b.restart(), Complete: complete(s.Complete), Stop: b.stop(),
		},
		Checkpoint: b.checkpoint(),
		Times: Times{
			StageTimeout: float64(b.app.Settings.StageTimeout), Timeout: float64(b.app.Settings.Timeout),
			Duration: float64(b.app.Settings.Duration), Hold: float64(s.Hold), HoldEnds: s.HoldEnds,
			Silence: float64(silence(s.Role, s.TimeSettings)),
		},
	}
	p.PublishedConfigs = b.publishedConfigs(p.Script)
	p.Stage = slices.Concat(b.stage(p.Script), b.code(), b.files())
	b.apart(p.Stage)
	if b.usesData() {
		p.DefaultFS = b.defaultFS()
	}
	p.Process = b.process(p)
	if p.Inputs != nil && p.Inputs.Strategy == appdef.StrategyStream {
		p.Process.Stdin = p.Inputs.Strategy
	}
	p.Sides = b.sides(p)
	p.Discovery = b.discovery(p)
	p.Origins = b.origins()
	b.rootUser(p)
	b.machineAddress()
	b.configWarnings()
	return p
}

// barrier names the components that must be ready before this instance starts. Services wait for none.
func (b *builder) barrier() barrier {
	out := barrier{WaitsFor: []string{}, Timeout: float64(b.app.Settings.Barrier)}
	for _, r := range b.app.StartsAfter(b.component.Name) {
		out.After = append(out.After, r.Component+"-"+r.State)
	}
	if late(b.component) != 0 {
		return out
	}
	for _, c := range Order(b.app) {
		if late(c) == 0 && c.Instances > 0 {
			out.WaitsFor = append(out.WaitsFor, c.Name+"="+strconv.Itoa(c.Instances))
		}
	}
	return out
}

// restart is the policy for this instance: the gang's budget belongs to the app.
func (b *builder) restart() Restart {
	r := b.component.Settings.Restart
	if r.Scope == appdef.ScopeGang {
		r = b.app.Settings.GangBudget
	}
	return restartOf(r)
}

func restartOf(r appdef.Restart) Restart {
	if r.Scope == appdef.ScopeNever {
		r.Budget = 0
	}
	return Restart{
		Scope: string(r.Scope), Budget: r.Budget, Window: float64(r.Window),
		BackoffMin: float64(r.BackoffMin), BackoffMax: float64(r.BackoffMax), Refill: r.Refill,
	}
}

// Rule is the budget with its pauses, as it is charged.
func (r Restart) Rule() conductor.BudgetRule {
	return conductor.BudgetRule{
		Max: r.Budget, Window: Seconds(r.Window), RefillCheckpoint: r.Refill == "checkpoint",
		Backoff: conductor.Backoff{Min: Seconds(r.BackoffMin), Max: Seconds(r.BackoffMax)},
	}
}

func (b *builder) stop() stop {
	grace := graceOf(b.component, b.req.Allocation.KillWindow)
	if grace == 0 && b.component.Settings.Stop.Grace == 0 {
		b.warn(b.key("muster.stop.grace"), "a kill window of "+number(b.req.Allocation.KillWindow)+" s, so no grace",
			"muster.stop.grace or --kill-window", "the process is killed at once when it is stopped")
	}
	if room := b.req.Allocation.KillWindow - leavingTime; b.req.Allocation.KillWindow > 0 && grace > max(room, 0) {
		b.warn(b.key("muster.stop.grace"), number(grace)+" s", "at most "+number(max(room, 0))+" s",
			"the launcher kills "+number(b.req.Allocation.KillWindow)+" s after its own stop signal")
	}
	return stop{Signal: b.component.Settings.Stop.Signal, Grace: grace}
}
