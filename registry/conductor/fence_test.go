package conductor_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/registry/conductor"
)

// sealedRows is a roster of n workers of generation 3, with a service at its end.
func sealedRows(n int) (conductor.Facts, registry.Roster) {
	f := factsOf(component("worker", "worker", n, registry.ScopeGang), component("board", "service", 1, registry.ScopeInstance))
	r := registry.Roster{Version: 1, Run: "r", Gen: 3}
	for i := range n {
		name := fmt.Sprint("worker-", i)
		r.Rows = append(r.Rows, registry.Row{Instance: in(name), Rank: i, Inc: "inc-" + name})
	}
	r.Rows = append(r.Rows, registry.Row{Instance: in("board-0"), Rank: n, Inc: "inc-board-0"})
	return f, r
}

func quiet(row registry.Row) conductor.Silence {
	return conductor.Silence{Instance: row.Instance, Inc: row.Inc, Gen: 3, For: registry.DefaultTimes().Silent()}
}

func TestEvidence(t *testing.T) {
	times := registry.DefaultTimes()
	for _, tc := range []struct {
		name   string
		n      int
		me     string
		change func(i int, s *conductor.Silence) // of the answers; worker-0 gives none
		want   string
	}{
		{"alone", 1, "worker-0", nil, "1 of 1 true"},
		{"both", 2, "worker-0", nil, "2 of 2 true"},
		{"one of two is none", 2, "worker-0", func(_ int, s *conductor.Silence) { s.For = 0 }, "1 of 2 false"},
		{"two of three", 3, "worker-0", func(i int, s *conductor.Silence) { s.Fenced = i == 2 }, "2 of 3 true"},
		{"two of four", 4, "worker-0", func(i int, s *conductor.Silence) { s.Fenced = i > 1 }, "2 of 4 false"},
		{"a little too early", 3, "worker-0", func(_ int, s *conductor.Silence) { s.For -= time.Millisecond }, "1 of 3 false"},
		{"another generation", 3, "worker-0", func(_ int, s *conductor.Silence) { s.Gen = 2 }, "1 of 3 false"},
		{"another life", 3, "worker-0", func(_ int, s *conductor.Silence) { s.Inc = "later" }, "1 of 3 false"},
		{"the same answer twice", 3, "worker-0", func(_ int, s *conductor.Silence) { s.Instance, s.Inc = in("worker-1"), "inc-worker-1" }, "2 of 3 true"},
		{"a service asks", 3, "board-0", nil, "2 of 3 true"},
		{"a service asks one that hears", 1, "board-0", nil, "0 of 1 false"},
		{"a large gang", 400, "worker-0", nil, "160 of 160 true"},
		{"three quarters of a large gang", 400, "worker-0", func(i int, s *conductor.Silence) { s.Fenced = i%5 == 0 }, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f, r := sealedRows(tc.n)
			p := conductor.NewPanel(f, r, in(tc.me))
			var answers []conductor.Silence
			for i, row := range r.Rows[1:tc.n] {
				s := quiet(row)
				if tc.change != nil {
					tc.change(i+1, &s)
				}
				answers = append(answers, s)
			}
			silent, of, shown := p.Evidence(times, answers)
			if got := fmt.Sprint(silent, " of ", of, " ", shown); tc.want != "" && got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
			if of > 160 || shown != (4*silent >= 3*of && of == 160 || of < 160 && 2*silent > of) {
				t.Errorf("got %d of %d, shown %t", silent, of, shown)
			}
		})
	}
}

// A row of an instance that is replaced alone stays when another agent takes its place.
func TestEvidenceOfAReplacedInstance(t *testing.T) {
	f, r := sealedRows(2)
	f.Components[0].Scope = registry.ScopeInstance
	s := quiet(r.Rows[1])
	s.Inc = "its successor"
	if _, _, shown := conductor.NewPanel(f, r, in("worker-0")).Evidence(f.Times, []conductor.Silence{s}); !shown {
		t.Error("its successor's silence does not count")
	}
}

// Who goes by a name is asked where it is now; whoever is known by a host keeps the row's address until a new roster.
func TestPanelFollowsWhoMoved(t *testing.T) {
	f, r := sealedRows(4)
	f.Components[0].Scope = registry.ScopeInstance
	named := func(i int) string { return registry.MemberName("app", r.Rows[i].Instance, "") + ":7000" }
	for i := range r.Rows {
		r.Rows[i].Peer = fmt.Sprintf("10.0.0.%d:1", i)
	}
	r.Rows[1].Addr, r.Rows[2].Addr, r.Rows[3].Addr = named(1), named(2), "10.0.0.3:7000"
	p := conductor.NewPanel(f, r, in("worker-0"))
	if got, want := fmt.Sprint(p.Movers("app")), fmt.Sprint([]registry.Instance{in("worker-1"), in("worker-2")}); got != want {
		t.Errorf("%s may move, want %s", got, want)
	}
	at := p.At(map[registry.Instance]registry.Member{
		in("worker-1"): {Inc: "next", Phase: registry.PhaseReady, Peer: "10.0.0.9:2", API: "/s"},
		in("worker-2"): {Inc: "lost", Phase: registry.PhaseLost, Peer: "10.0.0.8:2"},
	})
	if got := []string{at.Rows()[0].Peer, at.Rows()[0].API, at.Rows()[1].Peer, at.Rows()[2].Peer}; !slices.Equal(got, []string{"10.0.0.9:2", "/s", "10.0.0.2:1", "10.0.0.3:1"}) {
		t.Errorf("asked at %q", got)
	}
	if p.Rows()[0].Peer != "10.0.0.1:1" {
		t.Error("another panel was changed")
	}
	f.Components[0].Scope = registry.ScopeGang
	if got := conductor.NewPanel(f, r, in("worker-0")).Movers("app"); len(got) != 0 {
		t.Errorf("%v may move in a gang that is formed anew", got)
	}
}

// TestPanelLaws: more silence never shows less, whom one asks does not depend on anything but oneself, and
// a majority of all is never a minority.
func TestPanelLaws(t *testing.T) {
	for seed := range uint64(500) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		n := 1 + rnd.IntN(200)
		f, r := sealedRows(n)
		p, again := conductor.NewPanel(f, r, in("worker-0")), conductor.NewPanel(f, r, in("worker-0"))
		if len(p.Rows()) > 160 || fmt.Sprint(p.Rows()) != fmt.Sprint(again.Rows()) {
			t.Fatalf("%d of %d are asked, not the same twice", len(p.Rows()), n)
		}
		var answers []conductor.Silence
		before, was := 0, false
		for _, k := range rnd.Perm(n) {
			if k == 0 {
				continue
			}
			answers = append(answers, quiet(r.Rows[k]))
			silent, of, shown := p.Evidence(f.Times, answers)
			if silent < before || was && !shown || silent > of {
				t.Fatalf("seed %d: %d of %d %t after %d %t", seed, silent, of, shown, before, was)
			}
			if shown && n <= 160 && 2*(len(answers)+1) <= n {
				t.Fatalf("seed %d: %d answers of %d members are evidence", seed, len(answers), n)
			}
			before, was = silent, shown
		}
	}
}

// TestSampleIsSafe: while at most half of a gang is cut off, however its ranks lie on racks and hosts, no member that is
// cut off takes the registry for unreachable.
func TestSampleIsSafe(t *testing.T) {
	for _, n := range []int{161, 400, 1000, 5000} {
		f, r := sealedRows(n)
		for name, cut := range map[string]func(i int) bool{
			"the first half":  func(i int) bool { return i < n/2 },
			"the second half": func(i int) bool { return i >= (n+1)/2 },
			"every other":     func(i int) bool { return i%2 == 1 },
			"racks of 40":     func(i int) bool { return i/40%2 == 1 && i < n/80*80 },
		} {
			var answers []conductor.Silence
			var askers []registry.Instance
			for i, row := range r.Rows[:n] {
				if cut(i) {
					answers, askers = append(answers, quiet(row)), append(askers, row.Instance)
				}
			}
			for k := 0; k < len(askers); k += 1 + len(askers)/25 {
				if silent, of, shown := conductor.NewPanel(f, r, askers[k]).Evidence(f.Times, answers); shown {
					t.Errorf("%d members, %s cut off: %s finds %d of %d silent", n, name, askers[k], silent, of)
				}
			}
		}
	}
}

// TestSampleArithmetic: with half of the gang cut off, the expected number of members that take that for an outage is
// below 1e-6. The peers of a panel are drawn without replacement.
func TestSampleArithmetic(t *testing.T) {
	f, r := sealedRows(1000)
	drawn := len(conductor.NewPanel(f, r, in("worker-0")).Rows())
	least := (3*drawn + 3) / 4
	choose := func(n, k int) float64 { // its logarithm
		a, _ := math.Lgamma(float64(n + 1))
		b, _ := math.Lgamma(float64(k + 1))
		c, _ := math.Lgamma(float64(n - k + 1))
		return a - b - c
	}
	for n := drawn + 1; n <= 20_000; n += 1 + n/10 {
		cut, peers := n/2, n-1
		silent := cut - 1 // the asker's peers among those
		wrong := 0.0
		for k := least; k <= min(drawn, silent); k++ {
			wrong += math.Exp(choose(silent, k) + choose(peers-silent, drawn-k) - choose(peers, drawn))
		}
		if expected := wrong * float64(cut); expected > 1e-6 {
			t.Errorf("%d members: %.2g members are expected to be wrong", n, expected)
		}
	}
}

// TestStandingLaws: the fence falls in time and not without reason, and the dead-man timer leaves room for an
// orderly end and none for more.
func TestStandingLaws(t *testing.T) {
	for seed := range uint64(20_000) {
		rnd := rand.New(rand.NewPCG(seed, 2))
		x := registry.DefaultTimes()
		x.TTL += time.Duration(rnd.IntN(30)) * time.Second
		x.Lost = 5 * time.Minute
		x.LostMass = x.Lost + time.Duration(rnd.IntN(600))*time.Second
		if err := x.Check(); len(err) > 0 {
			t.Fatal(err)
		}
		heard := time.Duration(rnd.IntN(1000)) * time.Second
		silence := time.Duration(rnd.Int64N(int64(x.LostMass)))
		c := conductor.Contact{Heard: heard}
		if rnd.IntN(3) > 0 {
			c.Evidence = heard + time.Duration(rnd.Int64N(int64(silence)+1)) - time.Duration(rnd.IntN(2))*time.Minute
		}
		c.Asked = max(c.Evidence, time.Duration(rnd.Int64N(int64(heard+silence)+1)))
		now := heard + silence
		valid := c.Evidence >= heard+x.Silent() && now-c.Evidence <= 5*time.Second
		got, wind := c.Standing(x, now), c.End(x)-now
		bad := func(law string) {
			t.Fatalf("seed %d: %s: silent for %s, evidence %s ago, asked %s ago: standing %d, wind %s", seed, law, silence, now-c.Evidence, now-c.Asked, got, wind)
		}
		switch {
		case silence >= x.Outage() && got != conductor.CutOff:
			bad("there is an end to every outage")
		case got == conductor.Holding && !valid:
			bad("nobody holds on without evidence")
		case got == conductor.CutOff && valid && silence < x.Outage():
			bad("who has evidence is not cut off")
		case got == conductor.CutOff && silence < x.Fence():
			bad("the fence falls too early")
		case got == conductor.CutOff && c.Asked < heard+x.Fence()+registry.AskRound && silence < x.Fence()+5*time.Second && silence < x.Outage():
			bad("one asking is the fence")
		case got != conductor.CutOff && !valid && silence >= x.Fence()+5*time.Second:
			bad("the fence falls too late")
		case got == conductor.InTouch && silence >= x.Silent():
			bad("who hears nothing asks")
		case wind > x.Lost-5*time.Second:
			bad("the dead-man timer is wound beyond the grace")
		case silence < x.Fence() && wind < 20*time.Second:
			bad("an orderly end has no room")
		case got == conductor.Holding && wind < 20*time.Second:
			bad("an orderly end has no room")
		case silence >= x.Fence()+25*time.Second && now-c.Evidence > 25*time.Second && wind > 0:
			bad("a process may outlive what it rests on")
		}
	}
}

// TestEvidenceInTime: members whose last renewals lie as far apart as renewals can all see the outage before
// any of them is fenced.
func TestEvidenceInTime(t *testing.T) {
	x := registry.DefaultTimes()
	for apart := time.Duration(0); apart <= x.Renew+x.Request; apart += 100 * time.Millisecond {
		early, late := conductor.Contact{Heard: time.Minute}, time.Minute+apart
		for now := early.Heard; now < early.Heard+2*x.Fence(); now += time.Second {
			switch early.Standing(x, now) {
			case conductor.CutOff:
				t.Fatalf("%s apart: fenced after %s", apart, now-early.Heard)
			case conductor.Asking, conductor.Holding:
				early.Asked = now
				if now-late >= x.Silent() {
					early.Evidence = now
				}
			case conductor.InTouch:
			}
		}
	}
}

// TestOneAskingThatFails: a gang goes on through an outage although each other asking comes to nothing, as peers that are busy do
// not answer in time, and each may last as long as one may, as one host drops packets: what the others show is there a little or
// much earlier. Who asks looks when an asking is over, and always a little late. The peers are not asked more often than that wants.
func TestOneAskingThatFails(t *testing.T) {
	const look, late = 250 * time.Millisecond, 100 * time.Millisecond
	x := registry.DefaultTimes()
	for seed := range uint64(200) {
		rnd := rand.New(rand.NewPCG(seed, 4))
		within := func(d time.Duration) time.Duration { return time.Duration(rnd.Int64N(int64(d))) }
		c := conductor.Contact{Heard: time.Minute}
		apart := within(x.Renew + x.Request) // the others' last renewals were later
		var began, shown, over time.Duration // of the asking under way; began 0: none; shown 0: nothing will be
		failed, asked := rnd.IntN(2) == 0, 0
		end := c.Heard + x.Outage() - time.Second
		for now := c.Heard + x.Silent() + within(look); now < end; {
			if began != 0 && shown != 0 && now >= shown {
				c.Evidence = began
			}
			if began != 0 && now >= over {
				c.Asked, began = began, 0
			}
			s := c.Standing(x, now)
			if s == conductor.CutOff {
				t.Fatalf("seed %d: fenced after %s, the others being %s behind, evidence %s ago", seed, now-c.Heard, apart, now-c.Evidence)
			}
			if began == 0 && c.Due(s, now) {
				began, over, shown, asked = now, now+registry.AskRound, 0, asked+1
				if failed = !failed; !failed && began >= c.Heard+apart+x.Silent() {
					shown = now + within(registry.AskRound) + 1
					over = max(shown, over-time.Duration(rnd.IntN(2))*registry.AskRound)
				}
			}
			next := now + look
			if began != 0 {
				next = min(next, over)
			}
			now = next + within(late)
		}
		if most := int((end - c.Heard) / time.Second); asked > most {
			t.Errorf("seed %d: the peers were asked %d times, more than once a second", seed, asked)
		}
	}
}
