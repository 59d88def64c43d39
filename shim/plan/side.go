package plan

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/registry"
)

// The side processes of frameworks, by name: those beside the first of those that train at which ps-lite's nodes and rabit's
// workers meet.
const (
	SideScheduler = appdef.SideScheduler
	SideTracker   = appdef.SideTracker
)

// Side is a process beside the instance's own.
type Side struct {
	Name     string            `json:"name"`
	Argv     []string          `json:"argv"`
	Env      map[string]string `json:"env,omitempty"`  // over that of the process
	Port     string            `json:"port,omitempty"` // name of its port among Ports; empty: none
	Restart  bool              `json:"restart"`
	Finishes bool              `json:"finishes,omitempty"` // an end with 0 is its last, and is waited for when the process has ended with 0
	Why      string            `json:"why"`                // muster.side, or the framework that wants it
	// Verbatim is how many of the first of Argv are an image's own words.
	Verbatim int `json:"-"`
	// Literal is the one word of Argv into which nothing is filled, as in Process.
	Literal string `json:"-"`
}

// beside is one side process of one instance.
type beside struct {
	appdef.Side
	framework bool // the framework wants it
}

// frameworkSide is the side process that the app's framework wants; empty: none. Without servers MXNet has no cluster, and an
// xgboost that is alone has nobody to meet.
func frameworkSide(app *appdef.App) string {
	train, serve := 0, 0
	for _, c := range app.Components {
		switch c.Settings.Role {
		case appdef.RoleChief, appdef.RoleWorker:
			train += c.Instances * max(1, c.Settings.Processes)
		case appdef.RolePS:
			serve += c.Instances
		case appdef.RoleEvaluator, appdef.RoleService:
		}
	}
	name := appdef.FrameworkSide(app.Settings.Framework)
	if name == SideScheduler && serve == 0 || name == SideTracker && train < 2 {
		return ""
	}
	return name
}

// firstWorker tells whether the instance is the first of those that train: of the chiefs, else of the workers.
func firstWorker(app *appdef.App, component string, index int) bool {
	for _, role := range []appdef.Role{appdef.RoleChief, appdef.RoleWorker} {
		for _, c := range Order(app) {
			if c.Instances > 0 && c.Settings.Role == role {
				return c.Name == component && index == 0
			}
		}
	}
	return false
}

// sidesOf are the side processes of an instance, by name: the definition's, and the framework's, which runs beside the first
// of those that train and nowhere else, by the command that the definition has for it or by ours.
func sidesOf(app *appdef.App, component string, index int) []beside {
	c, wanted := app.Component(component), frameworkSide(app)
	var all []beside
	for _, s := range c.Settings.Sides {
		switch {
		case s.Name == appdef.FrameworkSide(app.Settings.Framework):
			if firstWorker(app, component, index) {
				s.Port, wanted = true, ""
				all = append(all, beside{Side: s, framework: true})
			}
		case s.Index == index || s.Index == appdef.EveryIndex:
			all = append(all, beside{Side: s})
		}
	}
	if wanted != "" && firstWorker(app, component, index) {
		all = append(all, beside{Side: appdef.Side{Name: wanted, Restart: true, Port: true}, framework: true})
		slices.SortFunc(all, func(a, b beside) int { return cmp.Compare(a.Name, b.Name) })
	}
	return all
}

// sidePorts are the ports of an instance's side processes, but those that the configuration asks for by itself, as
// `site.side.NAME`.
func sidePorts(app *appdef.App, component string, index int) []Port {
	var ports []Port
	c := app.Component(component)
	for _, s := range sidesOf(app, component, index) {
		if s.Port && !asksFor(app, component, appdef.SidePort(s.Name)) {
			ports = append(ports, Port{Name: appdef.SidePort(s.Name), Allowed: cmp.Or(c.Config[appdef.AllowedPortsKey], app.Settings.AllowedPorts)})
		}
	}
	return ports
}

func asksFor(app *appdef.App, component, key string) bool {
	return slices.ContainsFunc(app.PortNeeds(component), func(n appdef.PortNeed) bool { return n.Key == key })
}

// ofOtherSide tells that a template names the port of a side process of this component, which runs beside another instance:
// that one publishes it.
func ofOtherSide(app *appdef.App, c *appdef.Component, index int, template string) bool {
	own := sidesOf(app, c.Name, index)
	return slices.ContainsFunc(appdef.Placeholders(template), func(placeholder string) bool {
		name, ok := appdef.CutSidePort(strings.TrimPrefix(placeholder, "site."))
		if _, configured := c.Config[placeholder]; !ok || configured || slices.ContainsFunc(own, func(s beside) bool { return s.Name == name }) {
			return false
		}
		return name == appdef.FrameworkSide(app.Settings.Framework) || slices.ContainsFunc(c.Settings.Sides, func(s appdef.Side) bool { return s.Name == name && s.Port })
	})
}

// sides are the processes beside the instance's own.
func (b *builder) sides(p Plan) []Side {
	for _, s := range b.component.Settings.Sides {
		at := b.key("muster.side." + s.Name + ".index")
		switch {
		case s.Name == appdef.FrameworkSide(b.app.Settings.Framework):
			if s.Index > 0 {
				b.warn(at, strconv.Itoa(s.Index), "no value", "the "+s.Name+" runs beside the first of those that train")
			}
		case s.Index >= b.component.Instances:
			b.warn(at, strconv.Itoa(s.Index), "0 to "+strconv.Itoa(b.component.Instances-1), "the side process "+s.Name+" runs nowhere")
		}
	}
	var out []Side
	for _, s := range sidesOf(b.app, b.component.Name, b.req.Index) {
		out = append(out, b.side(p, s))
	}
	return out
}

func (b *builder) side(p Plan, s beside) Side {
	key := "muster.side." + s.Name
	out := Side{Name: s.Name, Restart: s.Restart, Finishes: s.framework, Why: key}
	if s.Port {
		out.Port = appdef.SidePort(s.Name)
	}
	if s.framework {
		out.Why = "muster.framework=" + b.app.Settings.Framework
	}
	switch {
	case s.Command != "":
		out.Argv, out.Why = []string{b.shell(), "-c", b.shellText(key, s.Command)}, key
	case s.framework && s.Name == SideTracker:
		out.Argv = []string{b.python(), "-c", trackerProgram}
	case s.framework:
		out.Argv, out.Verbatim, out.Literal = slices.Clone(p.Process.Argv), p.Process.Verbatim, p.Process.Literal
	default:
		out.Argv = []string{}
		b.problem(b.key(key), "no command of the side process "+s.Name, key, "give "+key+" the text that a shell runs")
	}
	if s.framework && s.Name == SideScheduler {
		out.Env = map[string]string{"DMLC_ROLE": SideScheduler}
	}
	return out
}

// trackerProgram runs the tracker of whichever xgboost is installed: up to 2.0 it is told the number of its workers at the
// start and joined, since 2.1 it is waited for.
const trackerProgram = `import os
from xgboost.tracker import RabitTracker
workers = int(os.environ["DMLC_NUM_WORKER"])
tracker = RabitTracker(n_workers=workers, host_ip=os.environ["MUSTER_HOST"], port=int(os.environ["MUSTER_PORT_SIDE_TRACKER"]))
if hasattr(tracker, "wait_for"):
    tracker.start()
    tracker.wait_for()
else:
    tracker.start(workers)
    tracker.join()
`

// SideFramework gives the variables that a side process has beside those of its instance's process; frameworks.SideEnv is the
// real one.
type SideFramework func(p Plan, r registry.Roster, side string) map[string]string

// FinishSide adds to a side process of a plan what start, that of the instance's process in this roster, decides.
func FinishSide(p Plan, s Side, r registry.Roster, facts StartFacts, start Start, framework SideFramework) (argv []string, env map[string]string) {
	f := finisher{plan: p, roster: r, facts: withRow(facts, p, r)}
	fill := f.filler()
	env = maps.Clone(start.Env)
	maps.Copy(env, eachValue(s.Env, fill))
	maps.Copy(env, framework(p, r, s.Name))
	env["MUSTER_SIDE"] = s.Name
	return s.filled(fill), env
}

// filled is the command with its own words filled in, and an image's as they are.
func (s Side) filled(fill func(string) string) []string {
	return Process{Argv: s.Argv, Verbatim: s.Verbatim, Literal: s.Literal}.filled(fill)
}
