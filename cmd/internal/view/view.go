package view

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/cmd/internal/apps"
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/registry/consul"
	"github.com/muster-agent/muster/shim/gate"
	"github.com/muster-agent/muster/shim/machine"
	"github.com/muster-agent/muster/shim/plan"
	"github.com/muster-agent/muster/shim/status"
)

// missing is the phase of an instance that nobody holds and that has not ended.
const missing = "missing"

// App is the answer of status APP --json and of ps APP --json.
type App struct {
	Version    int               `json:"version"`
	App        string            `json:"app"`
	Name       string            `json:"name"`
	Run        string            `json:"run"`
	Phase      string            `json:"phase"`
	Outcome    *string           `json:"outcome"`
	Started    *time.Time        `json:"started"`
	Generation int               `json:"generation"`
	Conductor  *string           `json:"conductor"` // null: nobody, or unknown
	Directive  *directiveView    `json:"directive"` // null: no registry says
	Missing    []string          `json:"missing"`
	AwaySince  *time.Time        `json:"registry_unreachable_since"`
	Verdict    *registry.Verdict `json:"verdict"`
	Instances  []status.Instance `json:"instances"`
	Progress   *float64          `json:"progress"` // the mean of the workers that report; null: none does
	places
	mixture
}

// places are where the run is kept.
type places struct {
	Registry string `json:"registry"`
	WorkDir  string `json:"work_dir"`
	LogDir   string `json:"log_dir"`
}

// mixture is what builds the run takes and has.
type mixture struct {
	Protocol *registry.Proto `json:"protocol"` // versions that the run takes; null: no registry says
	Builds   []build         `json:"builds"`   // of the agents that hold an index
}

// directiveView is what a directive tells a person.
type directiveView struct {
	Act    registry.Act   `json:"act"`
	Gen    int            `json:"gen"`
	Counts map[string]int `json:"counts"`
	Target map[string]int `json:"target,omitempty"`
	Why    string         `json:"why,omitempty"`
	First  string         `json:"first,omitempty"`
	// the step that the generation resumed from; -1: none, and FromBeginning says why
	Resume        *int64    `json:"resume,omitempty"`
	FromBeginning string    `json:"from_beginning,omitempty"`
	At            time.Time `json:"at"`
}

// Of lays out what was found.
func Of(f apps.Facts) App {
	v := App{
		Version: 1, App: f.ID, Name: f.Name(), Run: f.Run(), Phase: f.Phase(), Outcome: f.Outcome(),
		Missing: []string{}, Instances: []status.Instance{}, Verdict: f.Verdict(),
		places: places{Registry: f.Address.String()}, mixture: mixture{Builds: []build{}},
	}
	if at := f.Started(); !at.IsZero() {
		v.Started = new(status.Stamp(at))
	}
	if f.Local != nil {
		v.Registry = cmp.Or(f.Address, f.Local.Registry).String()
	}
	if f.Past != nil {
		v.Registry, v.LogDir = f.Past.Registry, f.Past.URL
	}
	if f.Here() {
		v.WorkDir, v.LogDir = f.Local.WorkDir, f.Local.LogDir
	}
	if v.Verdict != nil {
		verdict := *v.Verdict
		verdict.At = status.Stamp(verdict.At)
		v.Verdict = &verdict
	}
	v.fromRegistry(f.Registry)
	v.addInstances(f)
	return v
}

func (v *App) fromRegistry(st *consul.Status) {
	if st == nil {
		return
	}
	if st.Conductor != "" {
		v.Conductor = &st.Conductor
	}
	if !st.App.Created.IsZero() { // zero: of a run that is over, only its verdict is left
		v.Protocol = new(st.App.Proto.OrFirst())
	}
	v.Builds = buildsOf(st)
	d := st.Directive
	v.Generation = d.Gen
	v.Directive = &directiveView{
		Act: d.Act, Gen: d.Gen, Counts: d.Counts, Target: d.Target, Why: d.Why, First: d.First, Resume: d.Resume,
		FromBeginning: d.FromBeginning, At: status.Stamp(d.At),
	}
}

// addInstances merges the rows of all sources: what an agent says of itself wins, then the registry,
// then what was left in files.
func (v *App) addInstances(f apps.Facts) {
	rows := map[string]status.Instance{}
	if f.Result != nil {
		for _, row := range f.Result.Instances {
			rows[row.Instance] = row
		}
	}
	switch {
	case f.Registry != nil:
		for _, row := range registryRows(*f.Registry) {
			rows[row.Instance] = completed(row, f.Lasts[row.Instance])
		}
	case f.Result == nil:
		for name := range f.Records { // their agents did not say goodbye
			rows[name] = absent(name)
		}
		maps.Copy(rows, f.Lasts)
	}
	for name, st := range f.Peers {
		rows[name] = st.Instance
	}
	for name, st := range f.States {
		rows[name] = st.Instance
	}
	for name, record := range f.Records {
		row, there := rows[name]
		_, answers := f.States[name]
		_, elsewhere := f.Peers[name]
		if there && !answers && !elsewhere && f.Registry != nil && row.Cause == "" && holds(&f, name, record.Inc) {
			row.Cause = "its agent does not answer on this host"
			rows[name] = row
		}
	}
	found := foundWarnings(f.Registry)
	for name, row := range rows {
		if row.Conducts && v.Conductor == nil {
			v.Conductor = &name
		}
		if _, lives := f.States[name]; lives && row.AwaySince != nil &&
			(v.AwaySince == nil || row.AwaySince.Before(*v.AwaySince)) {
			v.AwaySince = new(status.Stamp(*row.AwaySince))
		}
		v.Generation = max(v.Generation, row.Generation)
		v.Instances = append(v.Instances, whole(warned(row, found[name])))
	}
	slices.SortFunc(v.Instances, func(a, b status.Instance) int {
		return cmp.Or(cmp.Compare(a.Rank, b.Rank), cmp.Compare(a.Component, b.Component), cmp.Compare(a.Index, b.Index))
	})
	if reported, _ := v.workers(); len(reported) > 0 {
		v.Progress = new(mean(reported))
	}
	for _, row := range v.Instances {
		if row.Phase == missing && row.Role != string(appdef.RoleService) && v.Verdict == nil {
			v.Missing = append(v.Missing, row.Instance)
		}
	}
}

// workers are the progress of the chiefs and workers that report one, and how many of these roles there are.
func (v *App) workers() (reported []float64, all int) {
	for _, row := range v.Instances {
		if row.Role != string(appdef.RoleChief) && row.Role != string(appdef.RoleWorker) {
			continue
		}
		if all++; row.Progress != nil {
			reported = append(reported, *row.Progress)
		}
	}
	return reported, all
}

func mean(of []float64) float64 {
	sum := 0.0
	for _, f := range of {
		sum += f
	}
	return sum / float64(len(of))
}

// holds tells that the registry still has an index held by this life of an agent.
func holds(f *apps.Facts, instance, inc string) bool {
	return slices.ContainsFunc(f.Registry.Members, func(m consul.MemberStatus) bool {
		return m.Instance.String() == instance && m.Live && m.Inc == inc
	})
}

// registryRows are the instances as the registry knows them, those that nobody ever claimed included.
func registryRows(st consul.Status) []status.Instance {
	app := apps.Definition(st.App).WithCounts(st.App.Counts)
	if st.Directive.Counts != nil {
		app = app.WithCounts(st.Directive.Counts)
	}
	ranks := map[registry.Instance]int{}
	var rows []status.Instance
	members := membersNow(st)
	for rank, in := range plan.Instances(&app) {
		ranks[in] = rank
		if !slices.ContainsFunc(members, func(m consul.MemberStatus) bool { return m.Instance == in }) {
			row := absent(in.String())
			row.Rank, row.Role = rank, roleOf(&app, in.Component)
			rows = append(rows, row)
		}
	}
	for _, m := range members {
		row := memberRow(m, st.Directive)
		row.Rank, row.Role = ranks[m.Instance], roleOf(&app, m.Component)
		rows = append(rows, row)
	}
	return rows
}

// membersNow are those of the run that there is, and of an earlier one whose end is not proved: not those that have
// ended with it.
func membersNow(st consul.Status) []consul.MemberStatus {
	return slices.DeleteFunc(slices.Clone(st.Members), func(m consul.MemberStatus) bool {
		return m.Run != st.App.Run && !m.Live && isOver(m.Phase)
	})
}

// isOver tells that a member has ended, one way or the other.
func isOver(p registry.Phase) bool {
	return p == registry.PhaseEnded || p == registry.PhaseFailed || p == registry.PhaseLeft || p == registry.PhaseLost
}

func roleOf(app *appdef.App, component string) string {
	if c := app.Component(component); c != nil {
		return string(c.Settings.Role)
	}
	return ""
}

func absent(name string) status.Instance {
	in, err := registry.ParseInstance(name)
	if err != nil {
		in = registry.Instance{Component: name}
	}
	return status.Instance{Version: 1, Identity: status.Identity{
		Instance: name, Component: in.Component,
		Index: in.Index,
	}, Phase: missing}
}

func memberRow(m consul.MemberStatus, d registry.Directive) status.Instance {
	row := status.Instance{
		Version: 1, Identity: status.IdentityOf(m.Instance), Phase: memberPhase(m, d), Since: m.Since,
		Location:   status.Location{Host: cmp.Or(m.Addr, m.Host), Pid: m.Pid, Ports: m.Ports, Exports: m.Exports},
		Starts:     status.Starts{Generation: m.Gen, Attempt: m.Attempt, Restarts: max(0, m.Attempt-1)},
		Unenforced: m.Unenforced, Conducts: d.By == m.Inc && m.Live,
	}
	row.CheckpointStep = m.Step
	if x := m.Exit; x != nil && isOver(m.Phase) {
		row.Cause = x.Why
		if !x.At.IsZero() && m.Phase != registry.PhaseLost { // what is lost has ended later than the last process of it
			row.Since = x.At
		}
		row.ExitInfo = &status.Exit{
			Code: x.Code, Signal: x.Signal, OOM: x.Class == registry.ClassOOM,
			At: status.Stamp(x.At), Message: x.Why,
		}
		row.Exit = shellExit(row.ExitInfo)
	}
	if row.Phase == missing {
		row.Cause = "its agent is gone, its death not proved"
	}
	return row
}

// memberPhase names the phase of a member by its record in the words of its agent (doc/machine.md). Only `missing` and
// `lost` are phases that no agent has.
func memberPhase(m consul.MemberStatus, d registry.Directive) string {
	switch {
	case m.Phase == registry.PhaseLost:
		return string(registry.PhaseLost)
	case isOver(m.Phase) && !m.Live:
		return string(machine.Done)
	case m.Phase == registry.PhaseLeft:
		return string(machine.Leaving)
	case isOver(m.Phase):
		return string(machine.Finishing)
	case !m.Live:
		return missing
	case m.Phase == registry.PhaseJoined:
		return string(machine.Staging)
	case d.Act == registry.ActRun:
		return string(machine.Running)
	case d.Act == registry.ActStop:
		return string(machine.Stopping)
	}
	return string(machine.Waiting)
}

// shellExit is a process's end as a shell shows it; nil where no process ended.
func shellExit(x *status.Exit) *int {
	switch {
	case x.Signal != 0:
		return new(128 + x.Signal)
	case x.Code != nil:
		return new(*x.Code)
	}
	return nil
}

// completed fills in what the registry does not keep, from what the same life of the instance left.
func completed(row, last status.Instance) status.Instance {
	if last.Instance == "" || row.Phase == missing || last.Generation < row.Generation || last.Pid != row.Pid {
		return row
	}
	row.Progress = last.Progress
	if last.CheckpointStep != nil {
		row.CheckpointStep = last.CheckpointStep
	}
	row.Attempt, row.Restarts, row.Failures = last.Attempt, last.Restarts, last.Failures
	row.Started, row.GPUs = last.Started, last.GPUs
	if last.Exit != nil {
		row.Exit, row.ExitInfo, row.PAI = last.Exit, last.ExitInfo, last.PAI
	}
	row.Cause, row.Warnings = cmp.Or(row.Cause, last.Cause), last.Warnings
	return row
}

// whole is a row with empty collections in place of null, and times as we print them.
func whole(row status.Instance) status.Instance {
	row.Version = 1
	if row.Ports == nil {
		row.Ports = map[string]int{}
	}
	if row.Exports == nil {
		row.Exports = map[string]string{}
	}
	if row.Unenforced == nil {
		row.Unenforced = []string{}
	}
	row.Since = status.Stamp(row.Since)
	if row.ExitInfo != nil {
		x := *row.ExitInfo
		x.At = status.Stamp(x.At)
		row.ExitInfo = &x
	}
	return row
}

// ShowKeys puts the keys of pages into the URLs that lead to them: whoever may read the app's keys has the run's token.
func (v *App) ShowKeys(f apps.Facts) {
	if f.Registry == nil || v.Verdict != nil {
		return
	}
	for i, row := range v.Instances {
		v.Instances[i].Exports = gate.Shown(f.Registry.App.Token, f.ID, row.Instance, row.Location)
	}
}
