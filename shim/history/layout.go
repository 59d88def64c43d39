package history

import (
	"cmp"
	"path"
	"slices"
	"time"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/registry/consul"
	"github.com/muster-agent/muster/shim/journal"
	"github.com/muster-agent/muster/shim/status"
)

// The files of a run's folder, APP/RUN, and those of an instance in APP/RUN/INSTANCE.
const (
	appFile    = "app.json"
	runFile    = "run.json"
	stateFile  = "state.json"
	planFile   = "plan.json"
	exitFile   = "exit.json"
	eventsFile = journal.File
	useFile    = "samples.json.gz"
	logEnding  = ".log.gz"
	sweptFile  = ".swept-" // and a user's number, in the store: when it was last swept by them
	tmpMark    = ".new-"   // in the names of files that are being written
)

// Run is run.json: what the registry knew when the conductor's agent ended.
type Run struct {
	Version  int                `json:"version"`
	App      string             `json:"app"`
	Run      string             `json:"run"`
	Name     string             `json:"name"`
	User     string             `json:"user"` // of the conductor's agent
	Launcher string             `json:"launcher"`
	Registry string             `json:"registry"`
	Started  time.Time          `json:"started"`
	Ended    time.Time          `json:"ended"`
	Outcome  string             `json:"outcome"` // succeeded, failed, stopped, interrupted
	Verdict  *registry.Verdict  `json:"verdict"`
	Counts   map[string]int     `json:"counts"`
	Proto    registry.Proto     `json:"protocol"`
	Last     registry.Directive `json:"directive"`
	Members  []member           `json:"members"`
	// Lost are the members that will leave nothing of their own in the store.
	Lost []string `json:"lost"`
}

// member is one as the registry had it.
type member struct {
	Instance string          `json:"instance"`
	Live     bool            `json:"live"` // it had not ended yet
	Step     *int64          `json:"checkpoint_step"`
	Record   registry.Member `json:"record"`
}

// State is state.json: an instance as its agent showed it last.
type State struct{ status.State }

// Context is what an agent knows of its run that the registry does not keep.
type Context struct {
	Name, User, Launcher, Registry string
	Now                            time.Time
}

// RunOf is the run of an app as its registry knows it.
func RunOf(st consul.Status, c Context) Run {
	r := Run{
		Version: 1, App: st.ID, Run: st.App.Run, Name: c.Name, User: c.User, Launcher: c.Launcher, Registry: c.Registry,
		Started: status.Stamp(st.App.Created), Ended: status.Stamp(c.Now), Outcome: "interrupted", Verdict: st.Verdict,
		Counts: st.App.Counts, Proto: st.App.Proto, Last: st.Directive, Members: []member{}, Lost: []string{},
	}
	if st.Verdict != nil {
		r.Outcome = string(st.Verdict.Outcome)
	}
	for _, m := range st.Members {
		if m.Run != r.Run {
			continue // it ended with an earlier run
		}
		name := m.Instance.String()
		r.Members = append(r.Members, member{Instance: name, Live: m.Live, Step: m.Step, Record: m.Member})
		if !m.Live && slices.Contains([]registry.Phase{
			registry.PhaseLost, registry.PhaseJoined, registry.PhaseReady,
		}, m.Phase) {
			r.Lost = append(r.Lost, name)
		}
	}
	return r
}

// replaces tells whether a run.json may take the place of another of the same run: never what has no verdict that of
// what has one, and of two equals the later one counts.
func (r Run) replaces(there Run) bool {
	if r.Verdict == nil || there.Verdict == nil {
		return there.Verdict == nil
	}
	return !r.Ended.Before(there.Ended)
}

// replaces tells whether a state.json may take the place of another of the same instance: not that of a later life.
func (s State) replaces(there State) bool {
	return cmp.Or(cmp.Compare(s.Generation, there.Generation), cmp.Compare(s.Attempt, there.Attempt)) >= 0
}

// Entry is a run's folder in a store.
type Entry struct {
	App, Run string
	Changed  time.Time // when something was last put into it
	Bytes    int64     // known where a bound asks for it
}

// path is the run's folder below the store's.
func (e Entry) path() string { return path.Join(e.App, e.Run) }

// Bound is how much is kept.
type Bound struct {
	Age   time.Duration // 0: without end
	Bytes int64         // 0: without end
}

// over are the runs to remove, the oldest first: those older than the bound's age, then as many as are too much. The
// current one stays.
func (b Bound) over(all []Entry, current Entry, now time.Time) []Entry {
	all = slices.Clone(all)
	slices.SortFunc(all, func(x, y Entry) int {
		return cmp.Or(x.Changed.Compare(y.Changed), cmp.Compare(x.path(), y.path()))
	})
	total := int64(0)
	for _, e := range all {
		total += e.Bytes
	}
	var gone []Entry
	for _, e := range all {
		old := b.Age > 0 && now.Sub(e.Changed) > b.Age
		much := b.Bytes > 0 && total > b.Bytes
		if e.path() == current.path() || !old && !much {
			continue
		}
		gone = append(gone, e)
		total -= e.Bytes
	}
	return gone
}
