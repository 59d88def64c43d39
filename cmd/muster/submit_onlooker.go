package main

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
	"github.com/muster-agent/muster/cmd/internal/apps"
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/registry/consul"
	"github.com/muster-agent/muster/shim/status"
)

// onlooker tells on stderr how a run goes, by the registry and by the agents that can be asked. What it said last it does not
// say again.
type onlooker struct {
	lookup  apps.Lookup
	app     string
	address registry.Address // of the registry
	ours    func(run string) bool
	say     func(line string)
	workers []registry.Instance // whose progress counts
	hbox    bool                // progress as hbox-submit has it

	st       *consul.Status                // of our run, as it was seen last; nil: nobody of it is known
	seen     atomic.Pointer[consul.Status] // st, for who does not look: it is there before anything is said of it
	silent   bool                          // the registry has not answered when it was asked last
	def      string                        // of st, once it was read
	mu       sync.Mutex                    // over last
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

// told says a line of its kind unless it was the last of that kind.
func (w *onlooker) told(kind, line string) {
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
		w.say(line)
	}
}

// look asks once, and tells whether the run is over: there is a verdict, or nobody who could bring one about, and no agent is
// left.
func (w *onlooker) look(ctx context.Context) (over bool) {
	st, err := w.lookup.Status(ctx, w.address, w.app)
	w.silent = err != nil && !errors.Is(err, registry.ErrNoApp)
	switch {
	case ctx.Err() != nil:
		return false
	case errors.Is(err, registry.ErrNoApp) || err == nil && !w.ours(st.App.Run):
		w.told("registry", "")
		if w.st == nil {
			w.told("phase", "waiting: no agent of the run is there yet")
		}
		return w.st != nil
	case err != nil:
		w.told("registry", fmt.Sprintf("registry %s does not answer: %v", w.address, err))
		return false
	}
	w.told("registry", "")
	if st.App.DefID != "" {
		if w.def == "" {
			w.lookup.Complete(ctx, w.address, &st)
			w.def = st.App.Def
		}
		st.App.Def = w.def
	}
	if w.workers == nil {
		def := apps.Definition(st.App)
		w.workers = hboxWorkers(&def)
	}
	if w.st != nil && w.st.App.Run != st.App.Run {
		w.say("the launcher begins run " + st.App.Run)
		w.attempts = nil
	}
	w.st = &st
	w.seen.Store(&st)
	w.told("phase", w.phase())
	w.restarts(ctx)
	if st.Directive.Act == registry.ActRun && st.Verdict == nil && time.Since(w.asked) >= progressEvery {
		w.asked = time.Now()
		w.progress(ctx)
	}
	return st.Live == 0 && (st.Verdict != nil || st.Interrupted())
}

// phase is where the run stands, and who is missing.
func (w *onlooker) phase() string {
	v := viewOf(apps.Facts{ID: w.app, Address: w.address, Registry: w.st})
	d := w.st.Directive
	waited := 0
	for _, row := range v.Instances {
		if row.Role != string(appdef.RoleService) {
			waited++
		}
	}
	switch {
	case v.Verdict != nil && w.st.Live > 0:
		return fmt.Sprintf("%s; %s to end", verdictText(*v.Verdict), appdef.Counted(w.st.Live, "agent"))
	case v.Verdict != nil:
		return verdictText(*v.Verdict)
	case w.st.Interrupted():
		return "interrupted: no agent of the run is left"
	case d.Act == registry.ActStop:
		return "stopping" + colon(d.Why)
	case len(v.Missing) > 0:
		return fmt.Sprintf("%s for %s, %d of %d are there", map[bool]string{true: "running, waits", false: "waiting"}[d.Act == registry.ActRun], named(v.Missing), waited-len(v.Missing), waited)
	case d.Act == registry.ActRun:
		return fmt.Sprintf("running: %s, generation %d", appdef.Counted(waited, "instance"), d.Gen)
	}
	return "waiting: all of " + fmt.Sprint(waited) + " are there" + colon(w.behind(v.Instances))
}

// behind are those that are not ready yet, and what they do.
func (w *onlooker) behind(rows []status.Instance) string {
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

// named is a list of names, of a long one the beginning.
func named(names []string) string {
	if len(names) <= mostMissing {
		return strings.Join(names, ", ")
	}
	return strings.Join(names[:mostMissing-1], ", ") + fmt.Sprintf(" and %d more", len(names)-mostMissing+1)
}

// restarts tells of processes that were started again, and how those before them ended: by their agents' word, else the
// registry's. Of a gang that is formed anew the attempt is known before it begins: then it is told when it does.
func (w *onlooker) restarts(ctx context.Context) {
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
	said := apps.AskAgents(ctx, w.lookup.State.Sockets(w.app), again, w.st.App.Token)
	for _, m := range again {
		st, answers := said[m.Instance.String()]
		if answers && st.Attempt < m.Attempt {
			now[m.Instance] = before[m.Instance]
			continue
		}
		why := st.LastEnd
		if why == "" && m.Exit != nil {
			why = m.Exit.Why
		}
		w.say(fmt.Sprintf("%s: attempt %d%s", m.Instance, m.Attempt, colon(why)))
	}
}

// progress is the mean of what the workers report, those of them that can be asked from here.
func (w *onlooker) progress(ctx context.Context) {
	said := w.ask(ctx)
	if w.hbox {
		w.told("progress", progressLine(said, w.workers))
		return
	}
	sum := 0.0
	for _, one := range said {
		sum += one
	}
	if len(said) > 0 {
		w.told("progress", fmt.Sprintf("progress %.0f%%", 100*sum/float64(max(len(w.workers), len(said)))))
	}
}

// ask asks the agents of the workers for their progress.
func (w *onlooker) ask(ctx context.Context) map[string]float64 {
	said := map[string]float64{}
	workers := slices.DeleteFunc(slices.Clone(w.st.Members), func(m consul.MemberStatus) bool { return !slices.Contains(w.workers, m.Instance) })
	for name, st := range apps.AskAgents(ctx, w.lookup.State.Sockets(w.app), workers, w.st.App.Token) {
		if st.Progress != nil {
			said[name] = *st.Progress
		}
	}
	return said
}
