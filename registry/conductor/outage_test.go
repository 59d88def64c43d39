package conductor_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/registry/conductor"
)

// An outage is a gang in virtual time, second by second: a registry that comes and goes, members that reach it
// or not and each other or not. The conductor's Step and the members' Contact are the real ones, the
// conductor is always somebody who reaches a registry that works, and a session ends as late as it may, or at
// any time of silence before.
type outage struct {
	*gang
	times   registry.Times // of the members
	members []*cutMember
	up      bool
	lenient bool // who has given in counts as silent all the same
	forgets bool // a new run does not know the last one's roster
	asked   int  // rounds that were evidence beyond the fence's time
}

type cutMember struct {
	name    string
	panel   conductor.Panel
	linked  bool // to the registry
	island  int  // those of one island reach each other
	beat    int  // when it renews: every third second
	session bool
	ends    int // second at which the session ends
	heard   int
	contact conductor.Contact
	left    int  // seconds until the process is gone; running: -1
	over    bool // it has ended with its run
}

const procRuns = -1

func newOutage(t testing.TB, n int) *outage {
	f := factsOf(component("worker", "worker", n, registry.ScopeInstance))
	f.Times.LostMass = 2 * time.Minute
	o := &outage{gang: running(t, f), times: f.Times, up: true}
	for i, in := range f.Instances(o.dir) {
		o.members = append(o.members, &cutMember{
			name: in.String(), panel: conductor.NewPanel(f, *o.roster, in), linked: true, beat: i % 3, session: true, ends: 20, left: procRuns,
		})
	}
	o.newConductor("newcomer")
	return o
}

// at is second s of the outage as a moment of a machine that has run for an hour.
func at(s int) time.Duration { return time.Hour + time.Duration(s)*time.Second }

// second is one tick; it names a member that is declared lost while its process lives.
func (o *outage) second(s int, rnd *rand.Rand) string {
	for _, m := range o.members {
		if !m.over {
			o.renew(m, s, rnd)
		}
	}
	if o.up {
		o.now = o.now.Add(time.Second - time.Millisecond)
		o.settle()
	} else {
		o.now = o.now.Add(time.Second)
		o.view.Trouble += time.Second
	}
	for _, m := range o.members {
		if !m.over && o.records[in(m.name)].Phase == registry.PhaseLost && m.left != 0 {
			return m.name
		}
	}
	for _, m := range o.members {
		if !m.over {
			o.stand(m, s)
		}
	}
	return ""
}

// newRun ends the run for those who hear of it and begins the next with another count (T15): agents of the new run take
// the places that were left. Who is cut off knows nothing of all that.
func (o *outage) newRun(n int) string {
	if !o.up || !slices.ContainsFunc(o.members, func(m *cutMember) bool { return m.linked && !m.over }) {
		return "nothing"
	}
	o.gang.newRun(component("worker", "worker", n, registry.ScopeInstance))
	if o.forgets {
		o.dir.Roster = registry.RosterRef{}
	}
	for i := range max(n, len(o.members)) {
		name := fmt.Sprint("worker-", i)
		if i < len(o.members) {
			if m := o.members[i]; !m.linked && !m.over {
				continue
			}
			o.members[i].over = true
			o.leave(name)
		}
		if i < n {
			o.join(name, "next-"+name, "h")
			o.ack(name)
		}
	}
	o.newConductor("founder")
	return fmt.Sprint("new run of ", n)
}

func (o *outage) renew(m *cutMember, s int, rnd *rand.Rand) {
	switch {
	case o.up && m.linked && (s%3 == m.beat || !m.session):
		if !m.session && o.records[in(m.name)].Phase == registry.PhaseLost {
			return // T9 is refused
		}
		if !m.session { // T9
			m.session, o.live[in(m.name)] = true, true
			o.ready[in(m.name)] = o.records[in(m.name)].Gen
		}
		m.heard, m.ends = s, s+20
		m.contact.Heard = at(s)
		if o.dir.Run != "r" && m.left == procRuns { // its run is over
			m.left = 20
		}
	case o.up && m.session && (s >= m.ends || !m.linked && rnd.IntN(30) == 0):
		m.session = false
		o.die(m.name)
	}
}

// stand is what a member's agent does every second.
func (o *outage) stand(m *cutMember, s int) {
	switch {
	case m.left > 0:
		m.left--
		return
	case m.left == 0:
		if m.session && o.dir.Run == "r" && m.contact.Standing(o.times, at(s)) == conductor.InTouch {
			m.left = procRuns
		}
		return
	}
	switch m.contact.Standing(o.times, at(s)) {
	case conductor.InTouch:
	case conductor.Asking, conductor.Holding:
		var answers []conductor.Silence
		for _, p := range o.members {
			if p != m && !p.over && p.island == m.island {
				answers = append(answers, conductor.Silence{
					Instance: in(p.name), Inc: "inc-" + p.name, Gen: 1, For: at(s) - p.contact.Heard, Fenced: o.fenced(p),
				})
			}
		}
		m.contact.Asked = at(s)
		if _, _, shown := m.panel.Evidence(o.times, answers); shown {
			m.contact.Evidence = at(s)
			if s-m.heard > 36 {
				o.asked++
			}
		}
	case conductor.CutOff:
		m.left = 20 // as long as it may take
	}
}

func (o *outage) fenced(p *cutMember) bool {
	return p.left != procRuns && !o.lenient
}

// leader: every session is given its whole time again.
func (o *outage) leader(s int) {
	for _, m := range o.members {
		m.ends = s + 20
	}
}

// befall cuts or mends a part of the network, and names what it did.
func (o *outage) befall(s int, rnd *rand.Rand) string {
	switch rnd.IntN(5) {
	case 4:
		return o.newRun(1 + rnd.IntN(2*len(o.members)+2))
	case 0:
		if o.up = !o.up; o.up {
			o.leader(s)
		}
		return fmt.Sprint("up ", o.up)
	case 1:
		some, linked, island := rnd.IntN(1<<len(o.members)), rnd.IntN(2) == 0, rnd.IntN(2)
		for i, m := range o.members {
			if some&(1<<i) != 0 {
				m.linked, m.island = linked, island
			}
		}
		return fmt.Sprintf("%b linked %t island %d", some, linked, island)
	case 2:
		m := o.members[rnd.IntN(len(o.members))]
		m.linked = !m.linked
		return fmt.Sprint(m.name, " linked ", m.linked)
	}
	if !o.up {
		return "nothing"
	}
	o.leader(s)
	return "new leader"
}

// violation plays one life; empty when nobody was declared lost while its process lived.
func violation(t testing.TB, seed uint64, change func(*outage)) (trace string, held int) {
	rnd := rand.New(rand.NewPCG(seed, 3))
	o := newOutage(t, 1+rnd.IntN(5))
	if change != nil {
		change(o)
	}
	next, flips := rnd.IntN(10), 1+rnd.IntN(5)
	for s := range 400 {
		if s == next && flips > 0 {
			trace += fmt.Sprintf("%d: %s\n", s, o.befall(s, rnd))
			next, flips = s+1+rnd.IntN([]int{5, 40, 100}[rnd.IntN(3)]), flips-1
		}
		if who := o.second(s, rnd); who != "" {
			return fmt.Sprintf("%s%d: %s of %d is lost while its process lives", trace, s, who, len(o.members)), o.asked
		}
		if o.dir.Gen > 1 && o.dir.Run == "r" { // all were lost: what follows is another generation's
			break
		}
	}
	return "", o.asked
}

// TestNobodyIsLostAlive is the law of the fence, whatever the network does.
func TestNobodyIsLostAlive(t *testing.T) {
	lives := uint64(1500)
	if testing.Short() {
		lives = 300
	}
	held := 0
	for seed := range lives {
		trace, n := violation(t, seed, nil)
		if trace != "" {
			t.Fatalf("seed %d:\n%s", seed, trace)
		}
		if n > 0 {
			held++
		}
	}
	if held < int(lives)/50 {
		t.Errorf("only %d of %d lives went on beyond the fence's time: this shows nothing", held, lives)
	}
}

// TestNobodyIsLostAliveFindsMutations: each half of the rule is needed.
func TestNobodyIsLostAliveFindsMutations(t *testing.T) {
	for name, change := range map[string]func(*outage){
		"no mass rule":               func(o *outage) { o.c.Facts.Times.LostMass = o.c.Facts.Times.Lost },
		"a fence that falls late":    func(o *outage) { o.times.TTL += 10 * time.Second },
		"no end to an outage":        func(o *outage) { o.times.LostMass = time.Hour },
		"fenced peers are witnesses": func(o *outage) { o.lenient = true },
		"a new run forgets who ran":  func(o *outage) { o.forgets = true },
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(1000) {
				if trace, _ := violation(t, seed, change); trace != "" {
					t.Logf("seed %d:\n%s", seed, trace)
					return
				}
			}
			t.Error("without this rule nobody is lost alive either")
		})
	}
}
