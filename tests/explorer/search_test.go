package explorer

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// start is the world at the beginning: all agents of the first run are launched.
func (s *setting) start() *world {
	w := s.world()
	w.begin(1)
	w.settle()
	return w
}

// finding is a broken invariant and the choices that lead to it.
type finding struct {
	bad    string
	story  []string
	states int
	steps  int
}

// patience is how long an agent may need to find out that it is none any more.
const patience = 30 * time.Second

// most is how many steps the fair schedule may take.
const most = 2000

// calm lets the faults stop. From here on there is one fair schedule.
func (w *world) calm() *world {
	n := w.clone()
	n.Fair, n.Left, n.Late, n.Free, n.Calm = true, faults{}, nil, false, w.Now
	return n
}

// fairStep is the next step of the fair schedule: connections first, then all work, then launches, then processes that
// end, then the clock.
func (w *world) fairStep() (choice, bool) {
	stray := w.stray() != ""
	rank := func(c choice) int {
		switch {
		case strings.HasSuffix(c.Name, " again"):
			return 0
		case c.Sort == work:
			return 1
		case strings.Contains(c.Name, " is launched"):
			return 2
		case c.Sort == event && !strings.HasSuffix(c.Name, "ends with 0"):
			return 3
		case c.Sort == event && stray:
			return 5
		}
		return 4
	}
	all := w.choices()
	if len(all) == 0 {
		return choice{}, false
	}
	return slices.MinFunc(all, func(a, b choice) int { return rank(a) - rank(b) }), true
}

// progress follows the fair schedule from a world until the run has ended. known are worlds from which that was shown.
func (w *world) progress(known map[uint64]bool) string {
	n := w.calm()
	var seen []uint64
	var last []string
	for range most {
		if n.Bad != "" {
			return n.Bad
		}
		stray := n.stray()
		switch {
		case n.Truth.Lost && stray == "": // nothing more is promised
			return ""
		case stray != "" && n.Now.Sub(n.Calm) >= patience:
			return "P4: " + stray
		}
		h := n.hash()
		if n.over() || known[h] {
			for _, h := range seen {
				known[h] = true
			}
			return ""
		}
		seen = append(seen, h)
		c, ok := n.fairStep()
		if !ok && n.Truth.Lost {
			return ""
		}
		if !ok {
			return "P1: nothing can happen any more, and the run has not ended"
		}
		last = append(last, c.Name)
		n = n.next(c)
	}
	if n.Truth.Lost {
		return ""
	}
	return fmt.Sprintf("P2: the run has not ended after %d steps: …%s", most, strings.Join(last[len(last)-12:], "; "))
}

// complete explores every order of choices, breadth first, up to a number of states.
func (s *setting) complete(limit int) finding {
	type node struct {
		parent int
		name   string
	}
	start := s.start()
	index := map[uint64]bool{start.hash(): true}
	known := map[uint64]bool{}
	nodes, queue := []node{{-1, ""}}, []*world{start}
	f := finding{}
	story := func(k int) (all []string) {
		for ; k > 0; k = nodes[k].parent {
			all = append(all, nodes[k].name)
		}
		slices.Reverse(all)
		return all
	}
	for k := 0; len(queue) > 0; k++ {
		w := queue[0]
		queue[0] = nil
		queue = queue[1:]
		next := w.choices()
		if w.Bad == "" && (k%4 == 0 || len(next) == 0) {
			w.Bad = w.progress(known)
		}
		if w.Bad != "" {
			f.bad, f.story, f.states = w.Bad, story(k), len(nodes)
			return f
		}
		for _, c := range next {
			f.steps++
			n := w.next(c)
			h := n.hash()
			if index[h] {
				continue
			}
			index[h] = true
			nodes, queue = append(nodes, node{k, c.Name}), append(queue, n)
		}
		if limit > 0 && len(nodes) > limit {
			f.bad, f.states = fmt.Sprintf("too many states: more than %d", limit), len(nodes)
			return f
		}
	}
	f.states = len(nodes)
	return f
}

// walk takes random choices. Faults are rarer than work. In every other walk threads have priorities, which change from
// time to time: so one of them may be late by much.
func (s *setting) walk(seed uint64, length int) (f finding) {
	r := rand.New(rand.NewPCG(seed, 1))
	w := s.start()
	w.Free = true
	known := map[uint64]bool{}
	epoch := r.Uint64()
	for range length {
		if r.IntN(15) == 0 {
			epoch = r.Uint64()
		}
		all := w.choices()
		if seed%2 == 0 {
			all = urgent(all, epoch)
		}
		if len(all) == 0 {
			break
		}
		c := pick(r, all)
		f.story = append(f.story, c.Name)
		f.steps++
		w = w.next(c)
		if w.Bad != "" {
			f.bad = w.Bad
			return f
		}
		if w.over() && !slices.ContainsFunc(w.choices(), func(c choice) bool { return c.Sort == event }) {
			break
		}
	}
	f.bad = w.progress(known)
	return f
}

// urgent leaves one thread's work, that of the highest priority in this epoch.
func urgent(all []choice, epoch uint64) []choice {
	priority := func(c choice) uint64 {
		h := fnv.New64a()
		_, _ = fmt.Fprint(h, epoch, c.Thread) // it never fails
		return h.Sum64()
	}
	first, most := "", uint64(0)
	for _, c := range all {
		if p := priority(c); c.Sort == work && p > most {
			first, most = c.Thread, p
		}
	}
	return slices.DeleteFunc(all, func(c choice) bool { return c.Sort == work && c.Thread != first })
}

// pick weighs the sorts of choices.
func pick(r *rand.Rand, all []choice) choice {
	busy := slices.ContainsFunc(all, func(c choice) bool { return c.Sort == work })
	weight := func(c choice) int {
		switch {
		case c.Sort == work:
			return 12
		case c.Sort == event && !strings.HasSuffix(c.Name, "ends with 0"):
			return 3
		case c.Sort == clock && !busy:
			return 4
		}
		return 1
	}
	total := 0
	for _, c := range all {
		total += weight(c)
	}
	n := r.IntN(total)
	for _, c := range all {
		if n -= weight(c); n < 0 {
			return c
		}
	}
	panic("no choice")
}

// replay takes the choices of a story; those that are not possible are left out.
func (s *setting) replay(story []string) (bad string, taken []string) {
	w := s.start()
	w.Free = true
	for _, name := range story {
		all := w.choices()
		k := slices.IndexFunc(all, func(c choice) bool { return c.Name == name })
		if k < 0 {
			continue
		}
		taken = append(taken, name)
		if w = w.next(all[k]); w.Bad != "" {
			return w.Bad, taken
		}
	}
	return w.progress(map[uint64]bool{}), taken
}

// shrink shortens a story that breaks an invariant: it leaves out ever smaller parts while the same invariant breaks.
func (s *setting) shrink(story []string) []string {
	bad, story := s.replay(story)
	want := kind(bad)
	for size := max(1, len(story)/2); size > 0; {
		shorter := false
		for at := 0; at+size <= len(story); {
			rest := slices.Concat(story[:at], story[at+size:])
			if bad, taken := s.replay(rest); kind(bad) == want && len(taken) < len(story) {
				story, shorter = taken, true
				continue
			}
			at += size
		}
		if !shorter || size > len(story) {
			size /= 2
		}
	}
	return story
}

// hunt is a walk that looks for the moments at which the rule that is taken away matters. Whoever is about to send its
// transaction is often held back, or the transaction itself is, until it would be refused.
func (s *setting) hunt(seed uint64, length int) (f finding) {
	r := rand.New(rand.NewPCG(seed, 3))
	w := s.start()
	w.Free = true
	held := map[string]int{} // thread → the step until which it waits
	patient := 5 + r.IntN(80)
	for step := range length {
		all := slices.DeleteFunc(w.choices(), func(c choice) bool { return held[c.Thread] > step && c.Sort == work })
		if len(all) == 0 {
			if clear(held); len(w.choices()) == 0 {
				break
			}
			continue
		}
		c := pick(r, all)
		for _, o := range all {
			if n := w.next(o); n.Apart > w.Apart && r.IntN(4) > 0 {
				c = o
				break
			}
		}
		n := w.next(c)
		if n.Meets > w.Meets && n.Apart == w.Apart && r.IntN(3) > 0 {
			late := slices.IndexFunc(all, func(o choice) bool { return o.Name == c.Name+", request late" })
			if held[c.Thread] = step + 1 + r.IntN(patient); late < 0 {
				continue
			}
			c = all[late]
			n = w.next(c)
		}
		f.story, f.steps = append(f.story, c.Name), f.steps+1
		apart := n.Apart > w.Apart
		if w = n; w.Bad == "" && apart {
			w.Bad = w.progress(map[uint64]bool{})
		}
		if w.Bad != "" {
			f.bad = w.Bad
			return f
		}
		if w.over() && !slices.ContainsFunc(w.choices(), func(c choice) bool { return c.Sort == event }) {
			break
		}
	}
	f.bad = w.progress(map[uint64]bool{})
	return f
}
