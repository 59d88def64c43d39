package submit

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/registry/consul"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/gate"
	"github.com/muster-agent/muster/shim/status"
)

// watcher reports how a run goes, by the registry and by the agents that can be asked. It does not report again what
// it reported last. One goroutine at a time calls look.
type watcher struct {
	registry Registry
	address  registry.Address
	app      string
	ours     func(run string) bool
	print    func(line string)
	workers  []registry.Instance // whose progress counts
	hbox     bool                // progress as HBox reports it

	st     *consul.Status                // of our run, as the registry told it last; nil: nobody of the run is known
	seen   atomic.Pointer[consul.Status] // st, for other goroutines: set before anything is reported of it
	silent bool                          // the registry did not answer the last question
	def    string                        // of st, once it was read

	mu       sync.Mutex // over last
	last     map[string]string
	attempts map[registry.Instance]int
	asked    time.Time
}

const (
	// watchPoll is how often the registry is asked.
	watchPoll = time.Second
	// progressEvery is how often the agents are.
	progressEvery = 3 * time.Second
	// mostMissing bounds a list of names in a line.
	mostMissing = 8
)

// report prints a line of its kind unless it was the last of that kind.
func (w *watcher) report(kind, line string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.last == nil {
		w.last = map[string]string{}
	}
	if line == w.last[kind] {
		return
	}
	w.last[kind] = line
	if line != "" {
		w.print(line)
	}
}

// Follow reports how a run of an app goes until it is over.
func Follow(
	ctx context.Context, from Registry, address registry.Address, app string, ours func(run string) bool,
	say func(line string),
) error {
	w := watcher{registry: from, address: address, app: app, ours: ours, print: say}
	tick := time.NewTicker(watchPoll)
	defer tick.Stop()
	for !w.look(ctx) {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
	return nil
}

// look asks once, and reports what has changed. It tells whether the run is over: there is a verdict, or no agent
// that could bring one about, and no agent is left.
func (w *watcher) look(ctx context.Context) (over bool) {
	st, err := w.registry.Status(ctx, w.app)
	w.silent = err != nil && !errors.Is(err, registry.ErrNoApp)
	switch {
	case ctx.Err() != nil:
		return false
	case errors.Is(err, registry.ErrNoApp) || err == nil && !w.ours(st.App.Run):
		w.report("registry", "")
		if w.st == nil {
			w.report("phase", "waiting: no agent of the run is there yet")
		}
		return w.st != nil
	case err != nil:
		w.report("registry", fmt.Sprintf("registry %s does not answer: %v", w.address, err))
		return false
	}
	w.report("registry", "")
	if st.App.DefID != "" {
		if w.def == "" {
			w.registry.Complete(ctx, &st)
			w.def = st.App.Def
		}
		st.App.Def = w.def
	}
	if w.workers == nil {
		def := definition(st.App)
		w.workers = Workers(&def)
	}
	if w.st != nil && w.st.App.Run != st.App.Run {
		w.print("the launcher begins run " + st.App.Run)
		w.attempts = nil
	}
	w.st = &st
	w.seen.Store(&st)
	w.report("phase", w.phase())
	w.restarts(ctx)
	w.pages()
	if st.Directive.Act == registry.ActRun && st.Verdict == nil && time.Since(w.asked) >= progressEvery {
		w.asked = time.Now()
		w.progress(ctx)
	}
	return st.Live == 0 && (st.Verdict != nil || st.Interrupted())
}

// phase is how far the run is, and who is missing.
func (w *watcher) phase() string {
	v := w.registry.View(w.app, w.st)
	d := w.st.Directive
	expected := 0
	for _, row := range v.Instances {
		if row.Role != string(appdef.RoleService) {
			expected++
		}
	}
	switch {
	case v.Verdict != nil && w.st.Live > 0:
		return fmt.Sprintf("%s; %s to end", exit.VerdictText(*v.Verdict), appdef.Counted(w.st.Live, "agent"))
	case v.Verdict != nil:
		return exit.VerdictText(*v.Verdict)
	case w.st.Interrupted():
		return "interrupted: no agent of the run is left"
	case d.Act == registry.ActStop:
		return "stopping" + colon(d.Why)
	case len(v.Missing) > 0:
		waiting := "waiting"
		if d.Act == registry.ActRun {
			waiting = "running, waits"
		}
		return fmt.Sprintf("%s for %s, %d of %d are there",
			waiting, someOf(v.Missing), expected-len(v.Missing), expected)
	case d.Act == registry.ActRun:
		return fmt.Sprintf("running: %s, generation %d", appdef.Counted(expected, "instance"), d.Gen)
	}
	return "waiting: all of " + fmt.Sprint(expected) + " are there" + colon(notReady(v.Instances))
}

// notReady counts those that are not ready yet by their phase.
func notReady(rows []status.Instance) string {
	doing := map[string]int{}
	for _, row := range rows {
		if row.Role != string(appdef.RoleService) && row.Phase != "waiting" {
			doing[row.Phase]++
		}
	}
	var parts []string
	for _, phase := range slices.Sorted(maps.Keys(doing)) {
		parts = append(parts, fmt.Sprintf("%d %s", doing[phase], phase))
	}
	return strings.Join(parts, ", ")
}

// colon is a text behind a colon, and nothing where there is none.
func colon(text string) string {
	if text == "" {
		return ""
	}
	return ": " + text
}

// someOf is a list of names, of a long one the beginning.
func someOf(names []string) string {
	if len(names) <= mostMissing {
		return strings.Join(names, ", ")
	}
	return strings.Join(names[:mostMissing-1], ", ") + fmt.Sprintf(" and %d more", len(names)-mostMissing+1)
}

// restarts reports processes that were started again, and how those before them ended: by their agents' word, else
// the registry's. Of a gang that is formed again the registry knows the attempt before it begins: it is reported when
// it does.
func (w *watcher) restarts(ctx context.Context) {
	now := map[registry.Instance]int{}
	var again []consul.MemberStatus
	for _, m := range w.st.Members {
		now[m.Instance] = m.Attempt
		if before, known := w.attempts[m.Instance]; known && m.Attempt > before && m.Attempt > 1 {
			again = append(again, m)
		}
	}
	before := w.attempts
	w.attempts = now
	if len(again) == 0 {
		return
	}
	states := w.registry.Agents(ctx, w.app, again, w.st.App.Token)
	for _, m := range again {
		st, answers := states[m.Instance.String()]
		if answers && st.Attempt < m.Attempt {
			now[m.Instance] = before[m.Instance]
			continue
		}
		why := st.LastEnd
		if why == "" && m.Exit != nil {
			why = m.Exit.Why
		}
		w.print(fmt.Sprintf("%s: attempt %d%s", m.Instance, m.Attempt, colon(why)))
	}
}

// pages reports where the pages of an HBox job are.
func (w *watcher) pages() {
	for _, m := range w.st.Members {
		if !w.hbox || !m.Live {
			continue
		}
		at := status.Location{Host: m.Addr, Ports: m.Ports, Exports: m.Exports}
		exports := gate.Shown(w.st.App.Token, w.st.ID, m.Instance.String(), at)
		for i, line := range HBoxPages(m.Instance.String(), exports) {
			w.report(fmt.Sprintf("page %d of %s", i, m.Instance), line)
		}
	}
}

// progress reports the mean of what those workers report that can be asked from here.
func (w *watcher) progress(ctx context.Context) {
	reported := map[string]float64{}
	workers := slices.DeleteFunc(slices.Clone(w.st.Members), func(m consul.MemberStatus) bool {
		return !slices.Contains(w.workers, m.Instance)
	})
	sum := 0.0
	for name, st := range w.registry.Agents(ctx, w.app, workers, w.st.App.Token) {
		if st.Progress != nil {
			reported[name] = *st.Progress
			sum += *st.Progress
		}
	}
	switch {
	case w.hbox:
		w.report("progress", HBoxProgress(reported, w.workers))
	case len(reported) > 0:
		w.report("progress", fmt.Sprintf("progress %.0f%%", 100*sum/float64(max(len(w.workers), len(reported)))))
	}
}
