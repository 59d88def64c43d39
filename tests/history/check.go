package history

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/muster-agent/muster/registry"
)

// rule is something that every history must keep. It returns each breach in words.
type rule struct {
	name string
	find func(story) []string
}

// rules are all of them.
var rules = []rule{
	{"at most one live process per rank", twoOfOneRank},
	{"no process of a generation while one of an older generation lives", generationsApart},
	{"no process starts before its generation is released", startsReleased},
	{"a generation is released when all of its roster have acknowledged it", releasedComplete},
	{"a run has one verdict, which never changes", oneVerdict},
	{"nothing of a run starts after its verdict", nothingAfterVerdict},
	{"a result that was reported is not worked for again", resultsKept},
	{"a run succeeds when each instance has ended with 0", successesTrue},
	{"an agent ends with 0 when its run was not a failure", agentsTruthful},
	{"every run ends", runsEnd},
}

// check returns every breach of the rules.
func check(history []event) []string {
	s := arrange(history)
	var all []string
	for _, r := range rules {
		for _, breach := range r.find(s) {
			all = append(all, r.name+": "+breach)
		}
	}
	return all
}

// twoOfOneRank finds processes of an instance that lived at the same time, in whichever runs. A process that starts
// asks for its rank's lock, which the kernel takes from a dead one: that sees even the shortest overlap.
func twoOfOneRank(s story) (breaches []string) {
	last := map[string][]*process{}
	for _, p := range s.processes {
		rank := p.App + " " + p.Instance
		if p.Holder != 0 {
			breaches = append(breaches, fmt.Sprintf("%s: pid %d held its rank", p, p.Holder))
		}
		for _, before := range last[rank] {
			if before.until > p.At {
				breaches = append(breaches, fmt.Sprintf("%s and %s", before, p))
			}
		}
		last[rank] = append(last[rank], p)
	}
	return breaches
}

// generationsApart finds processes of different generations or runs of an app that lived at the same time, and those
// that started after one of a newer generation. Lost data may have taken the newer generations with it; their processes
// must be gone all the same.
func generationsApart(s story) (breaches []string) {
	apps := map[string][]*process{}
	for _, p := range s.processes {
		for _, before := range apps[p.App] {
			order := cmp.Or(cmp.Compare(before.Run, p.Run), cmp.Compare(before.Gen, p.Gen))
			if order != 0 && before.until > p.At {
				breaches = append(breaches, fmt.Sprintf("%s while %s", p, before))
				break
			}
			if order > 0 && !s.lostBetween(p.App, before.At, p.At) {
				breaches = append(breaches, fmt.Sprintf("%s starts after %s", p, before))
				break
			}
		}
		apps[p.App] = append(apps[p.App], p)
	}
	return breaches
}

// startsReleased finds processes that started although a read that began later still found their generation not
// released, and those whose generation nobody has ever seen released.
func startsReleased(s story) (breaches []string) {
	for _, p := range s.processes {
		seen := false
		since := p.At // when the generation is known to have been released
		for _, d := range s.events {
			if d.Kind != directive || d.App != p.App || d.Run != p.Run {
				continue
			}
			if d.Sealed >= p.Gen && d.Gen >= p.Gen {
				seen, since = true, min(since, d.At)
			}
			if d.Asked > p.At && (d.Gen < p.Gen || d.Gen == p.Gen && d.Act == string(registry.ActWait)) &&
				!s.lostBetween(p.App, since, d.At) {
				breaches = append(breaches, fmt.Sprintf("%s: the directive of %s is %s %d", p, clock(d.Asked), d.Act, d.Gen))
				break
			}
		}
		if !seen {
			breaches = append(breaches, fmt.Sprintf("%s: no roster of this generation was seen", p))
		}
	}
	return breaches
}

func releasedComplete(s story) (breaches []string) {
	for _, e := range s.events {
		if e.Kind == released && len(e.Missing) > 0 {
			breaches = append(breaches, fmt.Sprintf("%s %s generation %d at %s without %v", e.App, e.Run, e.Gen, clock(e.At),
				e.Missing))
		}
	}
	return breaches
}

// verdicts are the first sight of each run's verdict.
func (s story) verdicts() map[string]event {
	all := map[string]event{}
	for _, e := range s.events {
		if _, had := all[e.App+" "+e.Run]; e.Kind == verdict && !had {
			all[e.App+" "+e.Run] = e
		}
	}
	return all
}

// oneVerdict finds verdicts that differ from the run's last one, unless the registry has lost that in between: agents
// that have not seen it cannot know it either.
func oneVerdict(s story) (breaches []string) {
	last := map[string]event{}
	for _, e := range s.events {
		if e.Kind != verdict {
			continue
		}
		v, had := last[e.App+" "+e.Run]
		if had && e.Text != v.Text && !s.lostVerdict(v, e.At) {
			breaches = append(breaches, fmt.Sprintf("%s %s: %s at %s, %s at %s", e.App, e.Run, v.Text, clock(v.At), e.Text,
				clock(e.At)))
		}
		last[e.App+" "+e.Run] = e
	}
	return breaches
}

// nothingAfterVerdict finds processes that started after their run's verdict was read. Where the registry has lost data
// in between, the verdict may be among them.
func nothingAfterVerdict(s story) (breaches []string) {
	first := s.verdicts()
	for _, p := range s.processes {
		v, ok := first[p.App+" "+p.Run]
		if ok && v.At < p.At && !s.lostBetween(p.App, v.Asked, p.At) {
			breaches = append(breaches, fmt.Sprintf("%s after %s at %s", p, v.Outcome, clock(v.At)))
		}
	}
	return breaches
}

// resultsKept finds processes that started after a record with their instance's result was read: in the scope of the
// instance any of the run, in that of the gang those of the result's generation.
func resultsKept(s story) (breaches []string) {
	scopes := s.scopes()
	for _, r := range s.events {
		if r.Kind != reported {
			continue
		}
		for _, p := range s.processes {
			again := p.App == r.App && p.Run == r.Run && p.Instance == r.Instance && p.At > r.At &&
				(scopes[p.App] == registry.ScopeInstance || p.Gen == r.Gen)
			if again && !s.lostBetween(p.App, r.Asked, p.At) {
				breaches = append(breaches, fmt.Sprintf("%s although its 0 of generation %d was read at %s", p, r.Gen, clock(r.At)))
			}
		}
	}
	return breaches
}

// successesTrue finds runs that succeeded although an instance has no process that ended with 0: any in the scope of
// the instance, one of the verdict's generation in that of the gang.
func successesTrue(s story) (breaches []string) {
	instances := map[string]event{}
	for _, e := range s.events {
		if e.Kind == runBegins {
			instances[e.App+" "+e.Run] = e
		}
	}
	for run, v := range s.verdicts() {
		if v.Outcome != string(registry.Succeeded) {
			continue
		}
		for _, in := range instances[run].Instances {
			done := slices.ContainsFunc(s.processes, func(p *process) bool {
				return p.App == v.App && p.Run == v.Run && p.Instance == in && p.ended && p.code == 0 &&
					(instances[run].Scope == registry.ScopeInstance || p.Gen == v.Gen)
			})
			if !done {
				breaches = append(breaches, fmt.Sprintf("%s: no process of %s has ended with 0 in generation %d", run, in, v.Gen))
			}
		}
	}
	slices.Sort(breaches)
	return breaches
}

// agentsTruthful finds agents that ended with 0 in a run whose verdict is a failure.
func agentsTruthful(s story) (breaches []string) {
	first := s.verdicts()
	for _, e := range s.events {
		if v := first[e.App+" "+e.Run]; e.Kind == agentEnds && e.Code == 0 && v.Outcome == string(registry.Failed) {
			breaches = append(breaches, fmt.Sprintf("%s %s %s (pid %d) at %s: %s", e.App, e.Run, e.Instance, e.Pid, clock(e.At),
				v.Text))
		}
	}
	return breaches
}

// runsEnd finds runs without a verdict. One whose data was lost may have been stopped by an operator instead.
func runsEnd(s story) (breaches []string) {
	first, stops := s.verdicts(), map[string]bool{}
	for _, e := range s.events {
		if e.Kind == runStops {
			stops[e.App+" "+e.Run] = true
		}
	}
	for _, e := range s.events {
		if _, ok := first[e.App+" "+e.Run]; e.Kind == runBegins && !ok && !stops[e.App+" "+e.Run] {
			breaches = append(breaches, fmt.Sprintf("%s %s, begun at %s, has no verdict", e.App, e.Run, clock(e.At)))
		}
	}
	return breaches
}

// unacknowledged are the instances of a roster whose own records, read together with the directive that released it,
// are of an older generation. A record only ever goes forward: none of these had acknowledged when the roster was
// sealed. An instance that is done runs nothing, and one that another agent has taken over says nothing of its
// predecessor.
func unacknowledged(r registry.Roster, members map[registry.Instance]registry.Member) (missing []string) {
	for _, row := range r.Rows {
		m, ok := members[row.Instance]
		if ok && !row.Done && m.Inc == row.Inc && m.Gen < r.Gen {
			missing = append(missing, row.String())
		}
	}
	return missing
}
