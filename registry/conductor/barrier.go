package conductor

import (
	"fmt"
	"slices"
	"time"

	"github.com/muster-agent/muster/registry"
)

// barrier decides about a waiting generation. It seals the generation when all members are ready, and ends the run when
// that takes too long. True means that the step's effect is decided.
func (r *decision) barrier() bool {
	if r.deadlocked() {
		return true
	}
	open := len(r.removed) > 0 || slices.ContainsFunc(r.missing, func(a *absence) bool { return a.res == noResult })
	begin := r.c.since.Add(r.d.Pause())
	if !open && !r.now.Before(begin) {
		return r.seal()
	}
	r.c.complete = time.Time{}
	if !open {
		r.wakeAt(begin)
		return false
	}
	end := begin.Add(r.limit())
	if r.now.Before(end) {
		r.wakeAt(end)
		return false
	}
	return r.conclude(r.timedOut())
}

// seal is T5. All keys are present: now everything is read once, and only what that reading shows is sealed.
func (r *decision) seal() bool {
	if r.c.complete.IsZero() {
		r.c.complete = r.now
	}
	if r.v.AllAt.Before(r.c.complete) || r.v.CheckpointsAt.Before(r.c.complete) {
		return r.only(ReadRecords{All: true, Checkpoints: true})
	}
	if !r.allReady() {
		return r.rereadPaced()
	}
	n := r.next()
	n.Act, n.First = registry.ActRun, ""
	n.Resume, n.FromBeginning = r.resume()
	switch {
	case n.FromBeginning != "":
		n.Budget.FromBeginning = true
	case n.Budget.FromBeginning && n.Resume != nil:
		n.Budget.Step, n.Budget.FromBeginning = *n.Resume, false // every later checkpoint is newer than that
	}
	names, waits := r.released(n, nil)
	n.Released, n.Why = names, waitsFor(waits)
	roster := buildRoster(r.c.Facts, n, n.Resume, func(in registry.Instance) registry.Member {
		return r.v.Records[in].Member
	})
	return r.sealed(n, roster)
}

// sealed writes a roster and the directive that names it.
func (r *decision) sealed(n registry.Directive, roster registry.Roster) bool {
	packed, err := registry.Pack(roster)
	if err != nil {
		// A roster consists of strings and numbers: JSON can always express it.
		panic(err)
	}
	n.Roster = packed.Ref
	n.Roster.Seeds = roster.Seeds()
	return r.only(Seal{Index: r.v.DirectiveIndex, Directive: n, Roster: roster, Packed: packed})
}

// rereadPaced rereads keys and records in turn, because a change fell between two readings. Readings that keep
// disagreeing must not become a busy loop.
func (r *decision) rereadPaced() bool {
	if r.v.ReadyAt.Before(r.v.AllAt) {
		return r.only(ReadReady{})
	}
	if at := r.v.AllAt.Add(disagreePause); r.now.Before(at) {
		return r.only(Wake{At: at})
	}
	return r.only(ReadRecords{All: true, Checkpoints: true})
}

func (r *decision) allReady() bool {
	for i, f := range r.c.Facts.Components {
		if !f.Waited {
			continue
		}
		for k := range r.c.Facts.count(r.d, i) {
			m := r.v.Records[registry.Instance{Component: f.Name, Index: k}].Member
			ready := m.Run == r.d.Run && m.Phase == registry.PhaseReady && m.Gen == r.d.Gen
			if !ready && resultOf(m, r.d, f.Scope) == noResult {
				return false
			}
		}
	}
	return true
}

// Open are the awaited members of a waiting generation that are not ready, as far as their records show no result. The
// generation cannot begin before the last of them.
func (c State) Open(v View) []registry.Instance {
	if v.Directive.Act != registry.ActWait || v.ReadyGen != v.Directive.Gen || v.ReadyAt.IsZero() {
		return nil
	}
	var open []registry.Instance
	for i, f := range c.Facts.Components {
		if !f.Waited {
			continue
		}
		for k := range c.Facts.count(v.Directive, i) {
			in := registry.Instance{Component: f.Name, Index: k}
			if !v.Ready[in] && resultOf(v.Records[in].Member, v.Directive, f.Scope) == noResult {
				open = append(open, in)
			}
		}
	}
	return open
}

// newestStep is the newest step that any member has stored, 0 for none.
func (r *decision) newestStep() int64 {
	step := int64(0)
	for _, c := range r.v.Checkpoints {
		for _, s := range c.Steps {
			step = max(step, s.Step)
		}
	}
	return step
}

// timedOut names the members that are missing from the barrier and how far each came.
func (r *decision) timedOut() registry.Verdict {
	late := slices.DeleteFunc(slices.Concat(r.missing, r.removed), func(a *absence) bool { return a.res != noResult })
	first := ""
	if len(late) > 0 {
		first = late[0].String()
	}
	return registry.Verdict{
		Outcome: registry.Failed, Class: registry.ClassTimeout, First: first,
		Cause: fmt.Sprintf(causeNotReady,
			len(late), r.c.Facts.World(r.d), seconds(r.limit()), some(late, namedMissing, describe)),
		Advice: "see why they were not launched or did not get ready, or raise muster.barrier.timeout",
	}
}
