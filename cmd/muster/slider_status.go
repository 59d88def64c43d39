package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/cmd/internal/apps"
	"github.com/muster-agent/muster/cmd/internal/console"
	"github.com/muster-agent/muster/cmd/internal/view"
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/publisher"
	"github.com/muster-agent/muster/shim/status"
	"github.com/muster-agent/muster/shim/wording"
)

// The states of an app as YARN names them; --state asks for one.
const (
	yarnNew      = "NEW"      // made, never started
	yarnAccepted = "ACCEPTED" // its run comes up
	yarnRunning  = "RUNNING"
	yarnFinished = "FINISHED" // succeeded, or stopped
	yarnFailed   = "FAILED"
	yarnKilled   = "KILLED" // interrupted: it goes on when it is started again
)

func sliderStates() []string {
	return []string{yarnNew, yarnAccepted, yarnRunning, yarnFinished, yarnFailed, yarnKilled}
}

// yarnState is what YARN would say of the app.
func yarnState(f *apps.Facts) string {
	outcome := view.OrEmpty(f.Outcome())
	switch {
	case f.Local == nil:
		return yarnNew
	case f.Phase() == "starting":
		return yarnAccepted
	case f.Living():
		return yarnRunning
	case outcome == string(registry.Failed):
		return yarnFailed
	case outcome == string(registry.Succeeded), outcome == string(registry.Stopped):
		return yarnFinished
	}
	return yarnKilled
}

// live tells of a state in which the app has a run.
func liveState(state string) bool { return state == yarnAccepted || state == yarnRunning }

// The numbers of Slider's StateValues.
const (
	sliderSubmitted = 1
	sliderCreated   = 2
	sliderLive      = 3
	sliderStopped   = 4
)

func sliderState(yarn string) int {
	switch yarn {
	case yarnNew:
		return sliderCreated
	case yarnAccepted:
		return sliderSubmitted
	case yarnRunning:
		return sliderLive
	}
	return sliderStopped
}

// facts are all that can be found out about this app's run; a run of that name at another place is not its own.
func (a *sliderApp) facts(ctx context.Context, s console.Streams, p *sliderWords) (apps.Facts, error) {
	k := a.lookup(s, p)
	f, err := k.OnHost(ctx, a.name)
	if err != nil || f.Local == nil || filepath.Clean(f.Local.WorkDir) != a.work() {
		return apps.Facts{ID: a.name}, err
	}
	return k.App(ctx, a.name)
}

// sliderDescription is Slider's ClusterDescription, as far as there is something to say.
type sliderDescription struct {
	Version    string                    `json:"version"` // of this form
	Name       string                    `json:"name"`
	Type       string                    `json:"type"`
	State      int                       `json:"state"`      // 1 submitted, 2 created, 3 live, 4 stopped
	CreateTime int64                     `json:"createTime"` // ms
	UpdateTime int64                     `json:"updateTime"` // ms
	Info       map[string]string         `json:"info"`
	Statistics map[string]map[string]int `json:"statistics"` // by component
	Instances  map[string][]string       `json:"instances"`  // the containers that live, by component
	Roles      sliderRoles               `json:"roles"`
	// Components and Liveness are those of application/live.
	Components json.RawMessage `json:"components"`
	Liveness   json.RawMessage `json:"liveness"`
	Status     struct {
		Live map[string]map[string]sliderNode `json:"live"` // by component and container
	} `json:"status"`
}

// sliderRoles are the resources of each component.
type sliderRoles map[string]map[string]string

// sliderNode is Slider's ClusterNode, with what muster knows besides.
type sliderNode struct {
	Name       string         `json:"name"`
	Role       string         `json:"role"`
	State      int            `json:"state"`
	Host       string         `json:"host"`
	CreateTime int64          `json:"createTime"` // ms
	StartTime  int64          `json:"startTime"`
	Phase      string         `json:"phase"`
	Attempt    int            `json:"attempt"`
	Ports      map[string]int `json:"ports"`
}

// liveComponent is what application/live/components says of one.
type liveComponent struct {
	Desired, Actual, Requested, TotalRequested, Failed, FailedRecently, NodeFailed, Started, StartFailed, Completed, Preempted int
	PendingAntiAffineRequestCount                                                                                              int
}

// statistics are a component's numbers by the names of Slider's StatusKeys.
func (c liveComponent) statistics() map[string]int {
	return map[string]int{
		"containers.desired": c.Desired, "containers.live": c.Actual, "containers.active.requests": c.Requested,
		"containers.requested": c.TotalRequested, "containers.failed": c.Failed, "containers.failed.recently": c.FailedRecently,
		"containers.failed.node": c.NodeFailed, "containers.failed.preempted": c.Preempted, "containers.completed": c.Completed,
		"containers.start.started": c.Started, "containers.start.failed": c.StartFailed,
		"containers.anti-affine.pending": c.PendingAntiAffineRequestCount,
	}
}

// describe is the description of an app as it stands.
func (a *sliderApp) describe(ctx context.Context, s console.Streams, p *sliderWords) (sliderDescription, error) {
	f, v, err := a.view(ctx, s, p)
	if err != nil {
		return sliderDescription{}, err
	}
	d := sliderDescription{
		Version: "1.0", Name: a.name, Type: "agent", State: sliderState(yarnState(&f)), CreateTime: a.record.Created.UnixMilli(),
		UpdateTime: a.record.Updated.UnixMilli(), Info: a.info(&f, time.Now()), Statistics: map[string]map[string]int{},
		Instances: map[string][]string{}, Roles: sliderRoles{},
	}
	if d.Components, err = answerOf(ctx, v, "application/live/components"); err != nil {
		return d, err
	}
	if d.Liveness, err = answerOf(ctx, v, "application/live/liveness"); err != nil {
		return d, err
	}
	live := map[string]liveComponent{}
	if err := json.Unmarshal(d.Components, &live); err != nil {
		return d, exit.With(exit.Internal, err)
	}
	for name, c := range live {
		d.Statistics[name], d.Instances[name] = c.statistics(), []string{}
	}
	d.describeRoles(v, live)
	d.describeNodes(view.Of(f).Instances, &f)
	return d, nil
}

func (d *sliderDescription) describeRoles(v publisher.View, live map[string]liveComponent) {
	for _, c := range v.Components {
		role := map[string]string{}
		maps.Copy(role, c.Resources)
		n := live[c.Name]
		for key, count := range map[string]int{
			"yarn.component.instances": n.Desired, "yarn.component.instances.actual": n.Actual, "yarn.component.instances.requesting": n.Requested,
			"yarn.component.instances.failed": n.Failed, "yarn.component.instances.started": n.Started, "yarn.component.instances.completed": n.Completed,
			"yarn.role.priority": c.Priority,
		} {
			role[key] = strconv.Itoa(count)
		}
		d.Roles[c.Name] = role
	}
}

// describeNodes lists what agents of this host answer for.
func (d *sliderDescription) describeNodes(rows []status.Instance, f *apps.Facts) {
	d.Status.Live = map[string]map[string]sliderNode{}
	for _, row := range rows {
		if _, lives := f.States[row.Instance]; !lives {
			continue
		}
		d.Instances[row.Component] = append(d.Instances[row.Component], row.Instance)
		if d.Status.Live[row.Component] == nil {
			d.Status.Live[row.Component] = map[string]sliderNode{}
		}
		since := row.Since.UnixMilli()
		d.Status.Live[row.Component][row.Instance] = sliderNode{
			Name: row.Instance, Role: row.Component, State: sliderLive, Host: row.Host, CreateTime: since, StartTime: since,
			Phase: row.Phase, Attempt: row.Attempt, Ports: row.Ports,
		}
	}
}

// info are the words about the whole app: Slider's names where there are any.
func (a *sliderApp) info(f *apps.Facts, now time.Time) map[string]string {
	info := map[string]string{"muster.phase": "created", "muster.folder": a.dir, "muster.work": a.work(), "muster.logs": filepath.Join(a.work(), "log"), "yarn.state": yarnState(f)}
	add := func(name string, at time.Time) {
		info[name], info[name+".millis"] = at.UTC().Format(time.RFC3339), strconv.FormatInt(at.UnixMilli(), 10)
	}
	add("create.time", a.record.Created)
	add("status.time", now)
	if f.Local == nil {
		return info
	}
	if at := f.Started(); !at.IsZero() {
		add("live.time", at)
	}
	info["muster.phase"], info["muster.run"] = f.Phase(), f.Run()
	if v := f.Verdict(); v != nil {
		info["muster.verdict"] = exit.VerdictText(*v)
	} else if outcome := f.Outcome(); outcome != nil {
		info["muster.verdict"] = *outcome
	}
	return info
}

// sliderStatus prints the description.
func sliderStatus(ctx context.Context, s console.Streams, p *sliderWords) error {
	a, err := p.open()
	if err != nil {
		return err
	}
	d, err := a.describe(ctx, s, p)
	if err != nil {
		return err
	}
	return p.print(s, d)
}

// writeReport writes the description of an app that was started, where --out asks for it.
func (a *sliderApp) writeReport(s console.Streams, p *sliderWords) error {
	if !p.has("--out") {
		return nil
	}
	// A report asks once, and the registry answers or fails.
	d, err := a.describe(context.Background(), s, p)
	if err != nil {
		return err
	}
	return p.print(s, d)
}

// print prints JSON to --out, else to stdout.
func (p *sliderWords) print(s console.Streams, value any) error {
	var text bytes.Buffer
	if err := console.PrintJSON(&text, value); err != nil {
		return err
	}
	return p.write(s, text.Bytes())
}

// write writes to --out, else to stdout.
func (p *sliderWords) write(s console.Streams, text []byte) error {
	if p.has("--out") {
		return exit.With(exit.Forbidden, os.WriteFile(p.one("--out"), text, 0o644))
	}
	_, err := s.Out.Write(text)
	return err
}

// sliderNo is the exit code of a question whose answer is no: Slider's EXIT_FALSE, -1, as a shell sees it.
const sliderNo = 255

// sliderExists answers with its exit code.
func sliderExists(ctx context.Context, s console.Streams, p *sliderWords) error {
	state, err := p.state()
	if err != nil {
		return err
	}
	name, err := p.name()
	if err != nil {
		return err
	}
	home, err := openSliderHome()
	if err != nil {
		return err
	}
	names, err := home.names()
	if err != nil {
		return exit.With(exit.Forbidden, err)
	}
	if !slices.Contains(names, name) {
		fmt.Fprintf(s.Out, "%s does not exist\n", name)
		return exit.Silent{Code: sliderNo}
	}
	a, err := home.open(name)
	if err != nil {
		return err
	}
	f, err := a.hostFacts(ctx, s, p)
	if err != nil {
		return err
	}
	is := yarnState(&f)
	fmt.Fprintf(s.Out, "%s exists: %s\n", name, is)
	if p.has("--live") && !liveState(is) || state != "" && state != is {
		return exit.Silent{Code: sliderNo}
	}
	return a.writeReport(s, p)
}

// hostFacts is facts without a question to the registry.
func (a *sliderApp) hostFacts(ctx context.Context, s console.Streams, p *sliderWords) (apps.Facts, error) {
	f, err := a.lookup(s, p).OnHost(ctx, a.name)
	if err != nil || f.Local == nil || filepath.Clean(f.Local.WorkDir) != a.work() {
		return apps.Facts{ID: a.name}, err
	}
	return f, nil
}

// state is --state in YARN's spelling.
func (p *sliderWords) state() (string, error) {
	state := strings.ToUpper(p.one("--state"))
	if state != "" && !slices.Contains(sliderStates(), state) {
		return "", exit.Usagef("slider %s: --state %s: want one of %s", p.verb, state, strings.Join(sliderStates(), ", "))
	}
	return state, nil
}

// sliderList lists the apps that were created here.
func sliderList(ctx context.Context, s console.Streams, p *sliderWords) error {
	if len(p.args) > 1 {
		return exit.Usagef("slider list: got %s, want at most one name", strings.Join(p.args, " "))
	}
	state, err := p.state()
	if err != nil {
		return err
	}
	home, err := openSliderHome()
	if err != nil {
		return err
	}
	names, err := home.names()
	if err != nil {
		return exit.With(exit.Forbidden, err)
	}
	var rows [][]string
	for _, name := range names {
		if len(p.args) == 1 && p.args[0] != name {
			continue
		}
		a, err := home.open(name)
		if err != nil {
			fmt.Fprintf(s.Err, "%s: %v\n", name, err)
			continue
		}
		f, err := a.hostFacts(ctx, s, p)
		if err != nil {
			fmt.Fprintf(s.Err, "%s: %v\n", name, err)
			continue
		}
		is := yarnState(&f)
		if p.has("--live") && !liveState(is) || state != "" && state != is {
			continue
		}
		outcome := ""
		if is != yarnNew { // what never ran has none
			outcome = view.OrEmpty(f.Outcome())
		}
		rows = append(rows, []string{name, is, wording.Clock(f.Started()), outcome, a.record.AppDef})
		rows = append(rows, p.containers(&f)...)
	}
	if len(rows) == 0 {
		fmt.Fprintln(s.Err, "no such app was created here; muster ps lists what else runs")
		if len(p.args) == 1 {
			return exit.Silent{Code: sliderNo}
		}
		return nil
	}
	return console.Table(s.Out, "NAME STATE STARTED OUTCOME APPDEF", rows)
}

// containers are the rows below an app: its instances, where --containers asks for them.
func (p *sliderWords) containers(f *apps.Facts) [][]string {
	if !p.has("--containers") || f.Local == nil {
		return nil
	}
	var only []string
	for _, w := range p.given["--components"] {
		only = append(only, w...)
	}
	var rows [][]string
	for _, row := range view.Of(*f).Instances {
		if len(only) > 0 && !slices.Contains(only, row.Component) {
			continue
		}
		rows = append(rows, []string{"  " + row.Instance, row.Phase, wording.Clock(row.Since), "", row.Host})
	}
	return rows
}

// definition is the stored App.
func (a *sliderApp) definition() (appdef.App, error) {
	flags := a.record.appFlags(a.dir)
	l, err := flags.Load(context.Background(), a.path(a.record.Definition), io.Discard) // its warnings have been said
	if err != nil {
		return appdef.App{}, err
	}
	defer l.Close()
	return l.App, nil
}
