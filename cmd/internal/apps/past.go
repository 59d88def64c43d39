package apps

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"time"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/registry/consul"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/history"
	"github.com/muster-agent/muster/shim/status"
	"github.com/muster-agent/muster/shim/wording"
)

// Past is where ended runs are looked for that neither this host nor a registry knows any more.
type Past struct {
	Store  *history.Store // nil: nowhere
	Run    string         // of the app; "": its last one
	Alone  bool           // nothing else is asked
	Listed bool           // the last run of each app is listed with those that there are
}

// Agent sends the logs and events of an instance: its agent on another host, or the history store in its place.
type Agent interface {
	Tail(ctx context.Context, log string, lines int, follow bool, to io.Writer) error
	Logs(ctx context.Context, name string, offset int64, follow bool, to io.Writer) error
	Lines(ctx context.Context, log string, q status.LogQuery, show func(status.LogLine) error) error
	Close()
}

// mostSilent is how many instances a line names that have left nothing.
const mostSilent = 5

// ofPast are the facts of a run that the history store has.
func (k Lookup) ofPast(ctx context.Context, id string) (Facts, error) {
	kept, err := k.Past.Store.Load(ctx, id, k.Past.Run)
	if errors.Is(err, registry.ErrNoApp) {
		return Facts{ID: id}, exit.With(exit.Usage, err)
	}
	if err != nil {
		return Facts{ID: id}, err
	}
	LeftOut(k.Warn, "history store "+k.Past.Store.URL, kept.Odd)
	f := Facts{ID: id, Past: kept, Registry: statusOf(kept), Peers: map[string]status.State{}}
	var silent []string
	for _, m := range f.Registry.Members {
		name := m.Instance.String()
		st, ok := kept.States[name]
		if !ok {
			silent = append(silent, name)
		}
		if ok && st.Generation >= m.Gen { // else an earlier life has left it
			st.Conducts = false
			f.Peers[name] = st.State
		}
	}
	if len(silent) > 0 {
		fmt.Fprintf(k.Warn, "%s: %s left nothing in the history store: what the registry knew last stands for it\n", id,
			wording.First(silent, mostSilent))
	}
	return f, nil
}

// statusOf is the registry's last word on a run. A member that only its own files tell of has ended.
func statusOf(kept *history.Kept) *consul.Status {
	st := &consul.Status{
		ID: kept.App, Directive: kept.Last, Verdict: kept.Verdict,
		App: registry.AppRecord{
			Run: kept.Run.Run, Proto: kept.Proto, Counts: kept.Counts, Created: kept.Started, User: kept.User,
		},
	}
	if len(kept.Def.Components) > 0 {
		st.App.Def, _ = appdef.Encode(kept.Def) // it was decoded
	}
	known := map[string]bool{}
	for _, m := range kept.Members {
		in, err := registry.ParseInstance(m.Instance)
		if err != nil {
			continue
		}
		known[m.Instance] = true
		st.Members = append(st.Members, consul.MemberStatus{Instance: in, Member: m.Record, Step: m.Step})
	}
	for _, name := range kept.Instances() {
		own := kept.States[name]
		in, err := registry.ParseInstance(name)
		if known[name] || err != nil {
			continue
		}
		st.Members = append(st.Members, consul.MemberStatus{Instance: in, Member: registry.Member{
			Run: kept.Run.Run, Inc: own.Inc, Gen: own.Generation, Phase: registry.PhaseEnded, Addr: own.Host,
			Attempt: own.Attempt, Origin: registry.Origin{Since: own.Since},
		}})
	}
	return st
}

// keptAgent is an instance in the history store.
type keptAgent struct {
	kept     *history.Kept
	instance string
}

func (keptAgent) Close() {}

func (a keptAgent) Logs(ctx context.Context, _ string, offset int64, _ bool, to io.Writer) error {
	return a.kept.Events(ctx, a.instance, offset, to)
}

// Tail reads a log twice where its last lines alone are wanted: it may be long.
func (a keptAgent) Tail(ctx context.Context, log string, lines int, _ bool, to io.Writer) error {
	if lines < 0 {
		return missingLog(a.kept.Log(ctx, a.instance, log, to))
	}
	all := &lineCounter{}
	if err := a.kept.Log(ctx, a.instance, log, all); err != nil {
		return missingLog(err)
	}
	return missingLog(a.kept.Log(ctx, a.instance, log, &lineSkipper{to: to, skip: all.lines() - lines}))
}

// Lines are lines of times that are not known: the store keeps the log alone.
func (a keptAgent) Lines(
	ctx context.Context, log string, q status.LogQuery, show func(status.LogLine) error,
) error {
	w := &lineShower{show: show}
	if err := a.Tail(ctx, log, q.Tail, false, w); err != nil || len(w.rest) == 0 {
		return err
	}
	return show(status.LogLine{Text: w.rest})
}

// lineShower cuts what is written to it into lines.
type lineShower struct {
	show func(status.LogLine) error
	rest []byte
}

// mostLine is how much of a line is held, in bytes.
const mostLine = 1 << 20

func (w *lineShower) Write(b []byte) (int, error) {
	w.rest = append(w.rest, b...)
	for len(w.rest) > 0 {
		end := bytes.IndexByte(w.rest, '\n') + 1
		if end == 0 && len(w.rest) < mostLine {
			break
		}
		if end == 0 {
			end = mostLine
		}
		if err := w.show(status.LogLine{Text: bytes.Clone(w.rest[:end])}); err != nil {
			return 0, err
		}
		w.rest = w.rest[end:]
	}
	return len(b), nil
}

func missingLog(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return errors.New("this log is not in the history store")
	}
	return err
}

// lineCounter counts lines.
type lineCounter struct {
	ends int
	open bool // the last line is not finished
}

func (c *lineCounter) Write(b []byte) (int, error) {
	c.ends += bytes.Count(b, newline)
	c.open = len(b) > 0 && b[len(b)-1] != '\n' || len(b) == 0 && c.open
	return len(b), nil
}

// lines counts an unfinished one as well.
func (c *lineCounter) lines() int {
	if c.open {
		return c.ends + 1
	}
	return c.ends
}

var newline = []byte{'\n'}

// lineSkipper leaves the first lines out; below 1 none.
type lineSkipper struct {
	to   io.Writer
	skip int
}

func (s *lineSkipper) Write(b []byte) (int, error) {
	if n := bytes.Count(b, newline); n < s.skip { // looked for one by one they would take ten times as long
		s.skip -= n
		return len(b), nil
	}
	rest := b
	for s.skip > 0 {
		end := bytes.IndexByte(rest, '\n')
		if end < 0 {
			return len(b), nil
		}
		rest = rest[end+1:]
		s.skip--
	}
	_, err := s.to.Write(rest)
	return len(b), err
}

// pastRows are the runs of the history store, the last of each app or all of them.
func (k Lookup) pastRows(ctx context.Context, all bool) ([]Row, error) {
	runs, _, odd, err := k.Past.Store.List(ctx)
	if err != nil {
		return nil, err
	}
	LeftOut(k.Warn, "history store "+k.Past.Store.URL, odd)
	rows := []Row{}
	for _, r := range runs {
		rows = append(rows, rowOfPast(r))
	}
	slices.SortStableFunc(rows, newestFirst)
	if !all {
		seen := map[string]bool{}
		rows = slices.DeleteFunc(rows, func(r Row) bool {
			before := seen[r.App]
			seen[r.App] = true
			return before
		})
	}
	return rows, nil
}

func rowOfPast(r history.Run) Row {
	row := Row{
		App: r.App, Name: r.Name, Phase: "interrupted", Outcome: &r.Outcome, Registry: r.Registry, User: r.User,
		Launcher: r.Launcher, Run: r.Run, Started: new(status.Stamp(r.Started)),
	}
	if r.Verdict != nil {
		row.Phase = "done"
	}
	if took := r.Ended.Sub(r.Started).Round(time.Millisecond).Seconds(); took > 0 {
		row.Seconds = &took
	}
	return row
}

// PastRun is a run of an app that the history store has.
type PastRun struct {
	Run         string     `json:"run"`
	Name        string     `json:"name"`
	User        string     `json:"user"`
	Launcher    string     `json:"launcher"`
	Started     *time.Time `json:"started"`
	Ended       *time.Time `json:"ended"`
	Outcome     string     `json:"outcome"`
	Cause       string     `json:"cause,omitempty"` // the verdict's
	Generations int        `json:"generations"`     // 0: not known
}

// Runs are the runs of an app in the history store, the newest first; none where there is no store.
func (k Lookup) Runs(ctx context.Context, app string) ([]PastRun, error) {
	all := []PastRun{}
	if err := appdef.CheckName("app", app); err != nil {
		return nil, exit.With(exit.Usage, err)
	}
	if k.Past.Store == nil {
		return all, nil
	}
	runs, err := k.Past.Store.Runs(ctx, app)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(runs, func(a, b history.Run) int { return b.Started.Compare(a.Started) })
	for _, r := range runs {
		one := PastRun{
			Run: r.Run, Name: r.Name, User: r.User, Launcher: r.Launcher, Started: new(status.Stamp(r.Started)),
			Ended: new(status.Stamp(r.Ended)), Outcome: r.Outcome, Generations: r.Last.Gen,
		}
		if r.Verdict != nil {
			one.Cause = r.Verdict.Cause
		}
		all = append(all, one)
	}
	return all, nil
}

// listPast adds the apps that the history store alone knows.
func (k Lookup) listPast(ctx context.Context, rows []Row) ([]Row, error) {
	more, err := k.pastRows(ctx, false)
	if err != nil {
		return nil, err
	}
	there := map[string]bool{}
	for _, r := range rows {
		there[r.App] = true
	}
	rows = append(rows, slices.DeleteFunc(more, func(r Row) bool { return there[r.App] })...)
	slices.SortStableFunc(rows, newestFirst)
	return rows, nil
}
