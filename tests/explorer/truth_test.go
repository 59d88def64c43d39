package explorer

import (
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/machine"
)

// truth is what has really happened, for the invariants. Its maps are replaced, never changed.
type truth struct {
	Acked    map[string]bool // run/generation/instance
	Sealed   map[string]bool // run/generation
	Ended    map[string]int  // run/instance → generation of the acknowledged result
	Verdicts map[string]registry.Outcome
	Up       map[string]bool // run/generation/instance
	Anew     map[string]int  // run → generation of the last full restart
	Saved    map[string]int  // run/instance → the last save that was answered
	Stops    map[string]bool // runs that a user asked to stop
	Flexes   map[string]bool // runs whose counts a user asked to change
	Lost     bool            // the registry has lost data
	Since    time.Time       // when
	Trouble  bool            // some fault has happened
}

func newTruth() truth {
	return truth{
		Acked: map[string]bool{}, Sealed: map[string]bool{}, Ended: map[string]int{},
		Verdicts: map[string]registry.Outcome{}, Up: map[string]bool{}, Anew: map[string]int{}, Saved: map[string]int{}, Stops: map[string]bool{}, Flexes: map[string]bool{},
	}
}

func with[V any](m map[string]V, k string, v V) map[string]V {
	m = maps.Clone(m)
	m[k] = v
	return m
}

func at(run string, gen int, in registry.Instance) string {
	return fmt.Sprintf("%s/%d/%s", run, gen, in)
}

// bad notes the first invariant that is broken.
func (w *world) bad(format string, args ...any) {
	if w.Bad == "" {
		w.Bad = fmt.Sprintf(format, args...)
	}
}

// written looks at what a transaction has changed.
func (w *world) written(i int, name string, before store) {
	a := &w.Agents[i]
	w.consistent(a, name)
	w.dropped(name, before)
	for k, e := range w.KV.Keys {
		old, had := before.Keys[k]
		if had && old.Index == e.Index {
			continue
		}
		switch v := e.Value.(type) {
		case registry.Member:
			if o, ok := old.Value.(registry.Member); ok && o.Inc != v.Inc {
				w.claimed(name, k, o, v, before)
			}
			if v.Phase == registry.PhaseReady && name == "T4" {
				w.Truth.Acked = with(w.Truth.Acked, at(v.Run, v.Gen, a.In), true)
			}
			if v.Phase == registry.PhaseEnded && v.Exit != nil {
				in, _ := instanceAt("members/", k)
				w.Truth.Ended = with(w.Truth.Ended, v.Run+"/"+in.String(), v.Exit.Gen)
			}
		case registry.Verdict:
			if have, ok := w.Truth.Verdicts[v.Run]; ok && have != v.Outcome {
				w.bad("V1: run %s has two verdicts: %s and %s", v.Run, have, v.Outcome)
			}
			w.judged(v)
		case registry.Directive:
			o, _ := old.Value.(registry.Directive)
			w.directed(o, v, had, name)
		}
	}
}

// consistent: the keys of an instance do not contradict each other.
func (w *world) consistent(a *agent, name string) {
	for _, k := range w.KV.under("live/") {
		in, _ := instanceAt("live/", k)
		inc, _, _ := read[string](w.KV, k)
		if m, _, ok := read[registry.Member](w.KV, keyMember(in)); !ok || m.Inc != inc {
			w.bad("K1: %s is held by %s, and its record is %s's, by %s", in, inc, m.Inc, name)
		}
	}
	acknowledged := 0
	for _, k := range w.KV.under("ready/") {
		if strings.HasSuffix(k, "/"+path(a.In)) {
			acknowledged++
		}
		if name == "T14" && a.Member.Session != "" && w.KV.Keys[k].Session == a.Member.Session {
			w.bad("K3: %s has left and still acknowledges: %s", a.In, k)
		}
	}
	if name == "T4" && acknowledged > 1 {
		w.bad("K2: %s acknowledges two generations", a.In)
	}
	if k := w.leftover(); name == "clean up" && k != "" {
		w.bad("K4: the conductor has cleaned up and left %s", k)
	}
	if e := w.KV.Keys[keyLive(a.In)]; name == "T14" && e.Session != "" && e.Session == a.Member.Session {
		w.bad("K3: %s has left and still holds its index", a.In)
	}
}

// claimed: only a claim makes an index another agent's, and only one that nobody holds.
func (w *world) claimed(name, key string, o, v registry.Member, before store) {
	in, _ := instanceAt("members/", key)
	live, e, held := read[string](before, keyLive(in))
	switch {
	case w.Truth.Lost:
	case name != "T3":
		w.bad("K1: %s was %s's and is %s's, by %s", in, o.Inc, v.Inc, name)
	case held && e.Session != "":
		w.bad("K1: %s is claimed by %s, and %s holds it", in, v.Inc, live)
	}
}

// dropped: what the user asked is not forgotten while its run goes on. T3 and T6 may: they saw nobody take part.
func (w *world) dropped(name string, before store) {
	d, _, ok := read[registry.Directive](w.KV, keyDirective)
	if !ok || w.Truth.Lost || d.Act == registry.ActStop || name == "T3" || name == "T6" {
		return
	}
	for _, k := range before.under("ask/" + registry.AskStop + "/") {
		v, _, _ := read[registry.Ask](before, k)
		if _, still := w.KV.Keys[k]; !still && v.Run == d.Run && len(before.under("live/")) > 0 {
			w.bad("A2: the stop of run %s is dropped by %s", v.Run, name)
		}
	}
}

// deserted: what was asked of a run is void when nobody takes part in it any more.
func (w *world) deserted() {
	if len(w.Truth.Stops) == 0 || len(w.KV.under("live/")) > 0 || w.KV.Keys[keyDirective].Session != "" {
		return
	}
	for k := range w.Agents {
		if w.Agents[k].Life == alive {
			return
		}
	}
	w.Truth.Stops = map[string]bool{}
}

// asked: a stop counts that arrives in time, though nobody took part in its run when it was sent.
func (w *world) asked(r request) {
	if _, why := w.KV.commit(r.Ops); why != "" {
		return
	}
	for _, o := range r.Ops {
		if a, ok := o.Value.(registry.Ask); ok && a.Kind == registry.AskStop {
			w.Truth.Stops = with(w.Truth.Stops, a.Run, true)
		}
	}
}

// stray is an agent that takes part in nothing any more and does not know it, "" if there is none.
func (w *world) stray() string {
	app, _, founded := read[registry.AppRecord](w.KV, keyApp)
	for k := range w.Agents {
		a := &w.Agents[k]
		if !w.connected(a) || !a.Member.On {
			continue
		}
		m, _, ok := read[registry.Member](w.KV, keyMember(a.In))
		own := a.Member.App
		switch {
		case ok && (m.Inc != a.Inc || m.Phase == registry.PhaseLost):
			return fmt.Sprintf("agent %s has not ended, and %s is %s's", a.Inc, a.In, m.Inc)
		case founded && app.Run == own.Run && (app.By != own.By || !app.Created.Equal(own.Created)):
			return fmt.Sprintf("agent %s has not ended, and the app was founded anew", a.Inc)
		case ok && m.Phase == registry.PhaseReady && w.holds(a) && a.Watch.D.Act == registry.ActWait && m.Gen == a.Watch.D.Gen &&
			w.KV.Keys[keyReady(m.Gen, a.In)].Session == "":
			return fmt.Sprintf("agent %s waits at a barrier that nobody knows it is at", a.Inc)
		}
	}
	return ""
}

// leftover is a key that nobody deletes any more, "" if there is none.
func (w *world) leftover() string {
	d, _, _ := read[registry.Directive](w.KV, keyDirective)
	for _, k := range w.KV.under("") {
		kept := strings.HasPrefix(k, "roster/"+d.Roster.ID+"/")
		if c := class(k); c == "ready" || c == "ask" || c == "roster" && !kept {
			return k
		}
	}
	return ""
}

// fenced: a process does not outlive by much that its agent has the index.
func (w *world) fenced() {
	for k := range w.Agents {
		a := &w.Agents[k]
		_, live, ok := read[string](w.KV, keyLive(a.In))
		if a.Member.On && w.connected(a) && ok && live.Session == a.Member.Session {
			a.Mine = w.moment()
		}
		if a.Proc.Live && a.Mine > 0 && w.moment()-a.Mine > times().LostMass {
			w.bad("F1: the process of agent %s runs, and %s has not been its for %s", a.Inc, a.In, w.moment()-a.Mine)
		}
	}
}

func (w *world) directed(o, v registry.Directive, had bool, name string) {
	other := o.Gen == v.Gen && o.Run != v.Run && name != "T19" // which replaces the restored copy of a run that is over
	if had && (orderOf(v) < orderOf(o) || other) {
		w.bad("D1: the directive went back from %s/%d %s to %s/%d %s", o.Run, o.Gen, o.Act, v.Run, v.Gen, v.Act)
	}
	if _, over := w.Truth.Verdicts[v.Run]; over && v.Act != registry.ActStop {
		w.bad("V2: run %s is over and lives again by %s", v.Run, name)
	}
	if o.Retries != v.Retries && v.Act == registry.ActWait {
		w.Truth.Anew = with(w.Truth.Anew, v.Run, v.Gen)
	}
	if v.Verdict != nil {
		if have, ok := w.Truth.Verdicts[v.Run]; ok && have != v.Verdict.Outcome {
			w.bad("V1: run %s has two verdicts: %s and %s", v.Run, have, v.Verdict.Outcome)
		}
		w.judged(*v.Verdict)
	}
	if w.Truth.Lost {
		return
	}
	if v.Save != nil && o.Save != nil && v.Save.Seq > o.Save.Seq {
		w.saving(*o.Save, v)
	}
	for c, n := range v.Counts {
		for _, f := range (*w.Facts)[0].Components {
			if f.Name == c && f.Count != n && !w.Truth.Flexes[v.Run] {
				w.bad("A1: run %s has %d of %s and nobody asked for that", v.Run, n, c)
			}
		}
	}
	switch {
	case name == "T5" && o.Gen == v.Gen && o.Act == registry.ActRun:
		w.resealed(v)
	case name == "T5":
		w.sealed(v)
	}
	if w.S.InPlace && v.Act == registry.ActWait && strings.HasPrefix(v.Why, "flex") {
		w.bad("X1: all restart: %s", v.Why)
	}
}

// saving: a save begins when all that run have answered the one before.
func (w *world) saving(before registry.Save, d registry.Directive) {
	for k := range w.Agents {
		a := &w.Agents[k]
		if a.Life == alive && a.In.Component == "w" && a.Proc.Live && a.Proc.Gen == d.Gen && w.facts(a).Run == d.Run && w.holds(a) &&
			a.Watch.D.Save != nil && a.Watch.D.Save.Seq == before.Seq && w.Truth.Saved[d.Run+"/"+a.In.String()] < before.Seq {
			w.bad("W1: save %d begins and %s is at save %d", d.Save.Seq, a.In, before.Seq)
		}
	}
}

func (w *world) sealed(d registry.Directive) {
	r, _, ok := read[registry.Roster](w.KV, keyRoster(d.Roster.ID))
	if !ok {
		w.bad("B1: generation %d is sealed without a roster", d.Gen)
		return
	}
	w.Truth.Sealed = with(w.Truth.Sealed, fmt.Sprintf("%s/%d", d.Run, d.Gen), true)
	for _, row := range r.Rows {
		if !w.waited(row.Component) || row.Done || w.Truth.Acked[at(d.Run, d.Gen, row.Instance)] {
			continue
		}
		w.bad("B1: generation %d is sealed and %s has not acknowledged it", d.Gen, row.Instance)
	}
}

// resealed looks at a roster that was written anew for a generation that runs: it has those that the counts have, and
// no process runs that it does not have, or at another address.
func (w *world) resealed(d registry.Directive) {
	r, _, ok := read[registry.Roster](w.KV, keyRoster(d.Roster.ID))
	if !ok {
		w.bad("X2: the roster of generation %d is not there", d.Gen)
		return
	}
	waited := 0
	for _, row := range r.Rows {
		if w.waited(row.Component) {
			waited++
		}
	}
	if n := (*w.Facts)[0].World(d); n != waited {
		w.bad("X2: a roster of %d for %d", waited, n)
	}
	for k := range w.Agents {
		a := &w.Agents[k]
		if !a.Proc.Live || a.Proc.Gen != d.Gen || w.facts(a).Run != d.Run || !w.waited(a.In.Component) {
			continue
		}
		row, ok := r.Row(a.In)
		switch m, _, _ := read[registry.Member](w.KV, keyMember(a.In)); {
		case !ok:
			w.bad("X3: %s runs and is in the roster no more", a.In)
		case m.Inc == a.Inc && !strings.HasPrefix(row.Addr, hostName(a.Host)+":"):
			w.bad("X4: %s runs on %s and all look for it at %s", a.In, hostName(a.Host), row.Addr)
		}
	}
}

func (w *world) waited(component string) bool {
	for _, c := range (*w.Facts)[0].Components {
		if c.Name == component {
			return c.Waited
		}
	}
	return false
}

// judged looks at a verdict that was written.
func (w *world) judged(v registry.Verdict) {
	if _, ok := w.Truth.Verdicts[v.Run]; ok || w.Truth.Lost {
		return
	}
	w.Truth.Verdicts = with(w.Truth.Verdicts, v.Run, v.Outcome)
	d, _, _ := read[registry.Directive](w.KV, keyDirective)
	switch v.Outcome {
	case registry.Stopped:
		if !w.Truth.Stops[v.Run] {
			w.bad("A1: run %s is stopped and nobody asked for that", v.Run)
		}
	case registry.Failed:
		if w.Fair && v.Class == registry.ClassTimeout && w.Now.Sub(w.Calm) >= times().Barrier {
			w.bad("P3: nothing is in the way since %s, and run %s has failed: %s", w.Now.Sub(w.Calm), v.Run, v.Cause)
		}
		if !w.Truth.Trouble {
			w.bad("V3: run %s has failed without any trouble: %s", v.Run, v.Cause)
		}
	case registry.Succeeded:
		w.succeeded(v.Run, d)
	}
}

// succeeded: a result counts that was reported, in the last generation or, alone, since the last full restart.
func (w *world) succeeded(run string, d registry.Directive) {
	missing, ended := "", 0
	for _, in := range (*w.Facts)[0].Instances(d) {
		gen, ok := w.Truth.Ended[run+"/"+in.String()]
		counts := ok && gen >= w.Truth.Anew[run] && (w.scope(in) == registry.ScopeInstance || gen == d.Gen)
		switch {
		case counts:
			ended++
		case w.waited(in.Component):
			missing = in.String()
		}
	}
	if missing != "" && (w.S.Enough == 0 || ended < w.S.Enough) {
		w.bad("R2: run %s has succeeded and %s has not", run, missing)
	}
}

func (w *world) scope(in registry.Instance) string {
	for _, c := range (*w.Facts)[0].Components {
		if c.Name == in.Component {
			return c.Scope
		}
	}
	return ""
}

// checkStart looks at a process that starts now.
func (w *world) checkStart(i, gen int) {
	a := &w.Agents[i]
	for k := range w.Agents {
		o := &w.Agents[k]
		switch {
		case k == i || !o.Proc.Live:
		case o.In == a.In:
			w.bad("S1: two live processes of %s: agents %s and %s", a.In, o.Inc, a.Inc)
		case w.waited(o.In.Component) && w.waited(a.In.Component) && o.Proc.Gen < gen && !w.Truth.Lost:
			w.bad("S2: %s of generation %d runs while %s starts in generation %d", o.In, o.Proc.Gen, a.In, gen)
		}
	}
	run := w.facts(a).Run
	if a.Row != nil {
		if row, ok := a.Row.Row(a.In); ok && !strings.HasPrefix(row.Addr, hostName(a.Host)+":") {
			w.bad("M1: %s starts on %s, and all look for it at %s", a.In, hostName(a.Host), row.Addr)
		}
	}
	if !w.waited(a.In.Component) || w.Truth.Lost {
		return
	}
	if !w.Truth.Sealed[fmt.Sprintf("%s/%d", run, gen)] {
		w.bad("B2: %s starts in generation %d, which was never sealed", a.In, gen)
	}
	for _, q := range w.component(a).After {
		for _, in := range w.facts(a).Instances(a.M.Directive) {
			if in.Component == q.Component && !w.Truth.Up[at(run, gen, in)] {
				w.bad("O1: %s starts in generation %d and %s is not up", a.In, gen, in)
			}
		}
	}
	ended, ok := w.Truth.Ended[run+"/"+a.In.String()]
	again := ended >= w.Truth.Anew[run] && (w.scope(a.In) == registry.ScopeInstance || ended == gen)
	if ok && again {
		w.bad("R1: %s has ended in generation %d and runs again in %d", a.In, ended, gen)
	}
}

// checkExit looks at an agent that ends by itself.
func (w *world) checkExit(a *agent) {
	if a.M.Phase != machine.Done || !a.Member.On || a.Member.Over || w.Truth.Lost || a.M.Result != registry.PhaseEnded {
		return
	}
	m, _, ok := read[registry.Member](w.KV, keyMember(a.In))
	run := w.facts(a).Run
	gen, had := w.Truth.Ended[run+"/"+a.In.String()]
	if had && (gen < w.Truth.Anew[run] || w.scope(a.In) != registry.ScopeInstance && gen < m.Gen) {
		return // a restart of all has made the result void
	}
	if ok && m.Inc == a.Inc && m.Phase != registry.PhaseEnded {
		w.bad("R3: %s ended with 0 and left with the record %s", a.In, m.Phase)
	}
}

// over tells whether everything has ended that has to.
func (w *world) over() bool {
	d, _, ok := read[registry.Directive](w.KV, keyDirective)
	if !ok || d.Verdict == nil {
		return false
	}
	for k := range w.Agents {
		if w.Agents[k].Life == alive || w.Agents[k].Proc.Live {
			return false
		}
	}
	return true
}

// kind is the name of an invariant in a text of bad.
func kind(bad string) string {
	k, _, _ := strings.Cut(bad, ":")
	return k
}
