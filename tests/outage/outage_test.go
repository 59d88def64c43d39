package outage_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/muster-agent/muster/registry"
)

// The product's times with its defaults: a fence falls after 30 s of silence, and what it stops is gone within 25 s more.
const (
	fence = 30 * time.Second
	gone  = 55 * time.Second
)

// Consul is away for all, for much longer than a fence waits: nothing stops, nothing starts, and the same processes come to
// their end afterwards.
func TestConsulIsAwayForAll(t *testing.T) {
	t.Parallel()
	j := newJob(t, settings{"muster.restart": "gang"})
	agents, cast := j.begin()
	j.times = []string{"--lost-grace", "90s"}
	other := j.agent(spare, 0)
	other.ends(64)
	other.says("give all agents of a run the same times")

	j.net.Cut(consulHost)
	cut := time.Now()
	for _, a := range agents {
		a.says("registry unreachable for the peers too, process goes on")
	}
	v := j.view(1)
	if v.Phase != "running" || len(v.Instances) != 1 || v.Instances[0].Outage == nil || v.Instances[0].Outage.Fenced || v.Instances[0].Outage.Members != 3 ||
		!strings.Contains(v.Instances[0].Cause, "registry away since") {
		t.Errorf("muster status meanwhile: %+v", v)
	}
	j.await("90 s without Consul", func() bool { return time.Since(cut) > 90*time.Second })
	j.stay(cast...)

	j.net.Heal(consulHost)
	for _, a := range agents {
		a.says("registry answers again")
	}
	j.stay(cast...)
	if d := j.directive(); d.Gen != 1 || j.count() != 3 {
		t.Errorf("generation %d after %d starts, want 1 after 3", d.Gen, j.count())
	}
	j.finish(agents, cast...)
}

// One host is cut off: its member stops itself, and only then the others go on with a replacement. When the cut is healed
// the old agent learns that and goes.
func TestOneHostIsCutOff(t *testing.T) {
	t.Parallel()
	j := newJob(t, settings{"muster.restart": "gang"})
	agents, cast := j.begin()

	j.net.Cut(2)
	cut := time.Now()
	replacement := j.agent(spare, 2)
	replacement.says("standing by")
	agents[2].says("event=cut-off")
	if v := j.view(2); len(v.Instances) != 1 || !strings.Contains(v.Instances[0].Cause, "cut off from the registry since") {
		t.Errorf("muster status on the host that is cut off: %+v", v)
	}
	j.wait(cast[2].gone, "the end of the process that is cut off")
	if took := cast[2].end.Sub(cut); took < fence-5*time.Second || took > gone {
		t.Errorf("the process that is cut off ended after %s, want %s to %s", took, fence, gone)
	}
	j.stay(cast[:2]...) // they have a minute to come to terms
	j.wait(cast[0].gone, "the end of the first generation")
	j.wait(cast[1].gone, "the end of the first generation")

	again := make([]*actor, 3)
	for range again {
		a := j.next()
		again[a.index()] = a
	}
	if again[2].Host != j.net.Addr(spare) || again[2].Gen != 2 || again[0].Gen != 2 {
		t.Errorf("worker-2 is on %s in generation %d, want on %s in 2", again[2].Host, again[2].Gen, j.net.Addr(spare))
	}
	if after := again[2].at.Sub(cast[2].end); after < 0 {
		t.Errorf("the replacement started %s before the end", -after)
	}
	if m := j.member(2); m.Addr != j.net.Addr(spare) || m.Gen != 2 {
		t.Errorf("record %+v, want on %s in generation 2", m, j.net.Addr(spare))
	}
	j.onlyAt(2, spare)
	j.net.Heal(2)
	agents[2].ends(75)
	if at := j.served(2); len(at) != 1 || at[0] != j.net.Addr(spare) {
		t.Errorf("worker-2 is in the catalog at %q after the old agent's end, want the successor's service alone", at)
	}
	if d := j.directive(); d.Gen != 2 || !strings.Contains(d.Why, "worker-2") && !strings.Contains(d.Why, "ready") {
		t.Errorf("directive %+v", d)
	}
	j.finish([]*agent{agents[0], agents[1], replacement}, again...)
}

// The cut is healed while the process that is cut off comes to its end: it is started again where it was, of nobody's
// account, and the others never notice.
func TestHealedInMidFence(t *testing.T) {
	t.Parallel()
	j := newJob(t, settings{"muster.restart": "instance", "muster.env." + lingerVariable: "20"})
	agents, cast := j.begin()

	j.net.Cut(1)
	agents[1].says("event=cut-off")
	j.net.Heal(1)
	agents[1].says("contact with the registry restored")
	select {
	case <-cast[1].gone:
		t.Error("the process ended before contact was back: this shows nothing")
	default:
	}
	_ = cast[1].conn.Close() // now it may end
	again := j.next()
	if again.Name != "worker-1" || again.Attempt != 2 || again.Gen != 1 || again.Host != cast[1].Host {
		t.Errorf("%+v was started, want worker-1 for the second time in generation 1", again.word)
	}
	j.stay(cast[0], cast[2])
	j.await("the restart in the record", func() bool { return j.member(1).Attempt == 2 })
	if m := j.member(1); m.Budget.Used != 0 || m.Inc == "" || m.Phase != registry.PhaseReady {
		t.Errorf("record %+v, want nothing charged", m)
	}
	cast[1] = again
	j.finish(agents, cast...)
}

// Two of three hosts lose a Consul that lives, and vouch for each other: they are held for as long as an outage may last.
// Then they stop, and only after that they are replaced.
func TestMostAreCutOffFromALivingConsul(t *testing.T) {
	t.Parallel()
	const mass, outage = 90 * time.Second, 60 * time.Second
	j := newJob(t, settings{"muster.restart": "gang"}, "--lost-mass", mass.String())
	agents, cast := j.begin()

	j.net.Block(1, consulHost)
	j.net.Block(2, consulHost)
	cut := time.Now()
	for _, a := range agents[1:] {
		a.says("registry unreachable for the peers too, process goes on")
	}
	var waits []string
	j.await("whom the conductor waits for", func() bool {
		waits = nil
		for _, w := range j.view(0).Instances[0].Waits {
			if w.Mass {
				waits = append(waits, w.Instance)
			}
		}
		return len(waits) == 2
	})
	first, second := j.agent(spare, 1), j.agent(0, 2)
	for i, a := range cast[1:] {
		j.wait(a.gone, "the end of a process that was held")
		if held := a.end.Sub(cut); held < outage-5*time.Second || held > outage+25*time.Second {
			t.Errorf("worker-%d ended after %s, want after %s", i+1, held, outage)
		}
	}
	j.stay(cast[0])
	again := make([]*actor, 3)
	for range again {
		a := j.next()
		again[a.index()] = a
	}
	if held := again[1].at.Sub(cut); held < mass {
		t.Errorf("replaced after %s, want after %s at least", held, mass)
	}
	j.net.Unblock(1, consulHost)
	j.net.Unblock(2, consulHost)
	agents[1].ends(75)
	agents[2].ends(75)
	j.finish([]*agent{agents[0], first, second}, again...)
}

// An agent that does not run cannot stop its process: the guard does, before the place is given away.
func TestTheGuardStopsForAStalledAgent(t *testing.T) {
	t.Parallel()
	j := newJob(t, settings{"muster.restart": "instance"})
	agents, cast := j.begin()

	j.must(agents[0].Process.Signal(syscall.SIGSTOP))
	stalled := time.Now()
	replacement := j.agent(spare, 0)
	j.wait(cast[0].gone, "the end of the process of a stalled agent")
	if took := cast[0].end.Sub(stalled); took < fence || took > gone {
		t.Errorf("the process ended after %s, want %s to %s", took, fence, gone)
	}
	select {
	case <-cast[0].term:
		t.Error("the process was told to stop by an agent that does not run")
	default:
	}
	again := j.next()
	for again.index() != 0 {
		again = j.next()
	}
	if again.Host != j.net.Addr(spare) {
		t.Errorf("worker-0 was replaced on %s, want %s", again.Host, j.net.Addr(spare))
	}
	j.must(agents[0].Process.Signal(syscall.SIGCONT))
	agents[0].ends(75)
	_ = replacement
}

// Consul's data is restored from a snapshot of an earlier time: it is named, everything goes on for as long as an outage may
// last, and nothing is founded anew. Then the processes are stopped. An adoption brings all back.
func TestConsulGoesBackInTime(t *testing.T) {
	t.Parallel()
	const mass, outage = 2 * time.Minute, 90 * time.Second
	j := newJob(t, settings{"muster.restart": "instance"}, "--lost-mass", mass.String())
	snapshot := filepath.Join(j.top, "snapshot")
	if out, err := j.consul("snapshot", "save", snapshot); err != nil {
		t.Fatal(err, out)
	}
	agents, cast := j.begin()

	if out, err := j.consul("snapshot", "restore", snapshot); err != nil {
		t.Fatal(err, out)
	}
	restored := time.Now()
	for _, a := range agents {
		a.says("registry lost its data")
	}
	j.longerThanAFence()
	j.stay(cast...)
	if out, err := j.consul("kv", "get", "-keys", "muster/"); err != nil || strings.TrimSpace(out) != "" {
		t.Errorf("keys %q, %v: want none founded anew", out, err)
	}
	if v := j.view(0); v.Phase != "running" || !strings.Contains(v.Instances[0].Cause, "registry lost its data") {
		t.Errorf("muster status: %+v", v)
	}

	for i, a := range cast {
		j.wait(a.gone, "the end of a process whose registry has lost its data")
		if took := a.end.Sub(restored); took < outage-5*time.Second {
			t.Errorf("worker-%d was stopped after %s, want %s at least", i, took, outage)
		}
	}
	j.await("the phase fenced", func() bool {
		v := j.view(0)
		return v.Instances[0].Phase == "fenced" && strings.Contains(v.Instances[0].Cause, "muster adopt")
	})
	if n := j.count(); n != len(cast) {
		t.Errorf("%d starts, want %d", n, len(cast))
	}
	j.adopt(1)
	again := make([]*actor, len(cast))
	for range again {
		a := j.next()
		again[a.index()] = a
	}
	for i, a := range again {
		if a.Host != cast[i].Host || a.Gen != 1 {
			t.Errorf("%+v, want it on %s in generation 1", a.word, cast[i].Host)
		}
	}
	j.finish(agents, again...)
}

// The snapshot is of this very gang, a generation ago: its directive is older, its sessions are renewed again. A member brings
// the registry forward at once, a newcomer gets no place, and the run ends right.
func TestConsulGoesBackAGeneration(t *testing.T) {
	t.Parallel()
	j := newJob(t, settings{"muster.restart": "gang"})
	agents, cast := j.begin()
	snapshot := filepath.Join(j.top, "snapshot")
	if out, err := j.consul("snapshot", "save", snapshot); err != nil {
		t.Fatal(err, out)
	}
	old := j.directive()
	j.must(syscall.Kill(cast[1].Pid, syscall.SIGKILL))
	for range cast {
		a := j.next()
		cast[a.index()] = a
	}
	if d := j.directive(); d.Gen != 2 || old.Gen != 1 {
		t.Fatalf("generation %d after %d, want 2 after 1", d.Gen, old.Gen)
	}

	if out, err := j.consul("snapshot", "restore", snapshot); err != nil {
		t.Fatal(err, out)
	}
	for _, a := range agents {
		a.says("registry lost its data")
	}
	newcomer := j.agent(spare, 1)
	newcomer.says("standing by")
	j.await("the second generation in the registry again", func() bool { d := j.directive(); return d.Gen == 2 && d.Adopted })
	j.longerThanAFence()
	j.stay(cast...)
	if d := j.directive(); d.Gen != 2 || d.Act != registry.ActRun || j.count() != 6 {
		t.Errorf("generation %d %s after %d starts; want 2 run and 6 starts", d.Gen, d.Act, j.count())
	}
	if strings.Contains(j.read(newcomer.log), "claimed") {
		t.Error("the newcomer has claimed an index")
	}
	j.must(newcomer.Process.Signal(os.Interrupt))
	<-newcomer.done
	j.finish(agents, cast...)
}

// longerThanAFence waits until whoever were cut off would have stopped its process.
func (j *job) longerThanAFence() {
	j.t.Helper()
	began := time.Now()
	j.await("as long as a fence takes", func() bool { return time.Since(began) > gone+5*time.Second })
}

// A member that restarts with its gang reports that it was cut off: all go on in the next generation, of nobody's account.
func TestHealedBehindTheFence(t *testing.T) {
	t.Parallel()
	j := newJob(t, settings{"muster.restart": "gang"})
	agents, cast := j.begin()

	j.net.Cut(1)
	agents[1].says("to=fenced")
	j.stay(cast[0], cast[2])
	j.net.Heal(1)
	again := make([]*actor, 3)
	for range again {
		a := j.next()
		again[a.index()] = a
	}
	for i, a := range again {
		if a.Gen != 2 || a.Host != j.net.Addr(i) {
			t.Errorf("%+v was started, want generation 2 on %s", a.word, j.net.Addr(i))
		}
	}
	if d := j.directive(); d.Gen != 2 || d.Budget.Used != 0 {
		t.Errorf("directive %+v, want generation 2 and nothing charged", d)
	}
	j.finish(agents, again...)
}

// An agent that was stalled and comes back before its place is given away starts its process again, with another guard.
func TestAStalledAgentComesBack(t *testing.T) {
	t.Parallel()
	j := newJob(t, settings{"muster.restart": "instance"})
	agents, cast := j.begin()

	j.must(agents[1].Process.Signal(syscall.SIGSTOP))
	stalled := time.Now()
	j.wait(cast[1].gone, "the end of the process of a stalled agent")
	if took := cast[1].end.Sub(stalled); took < fence || took > gone {
		t.Errorf("the process ended after %s, want %s to %s", took, fence, gone)
	}
	j.must(agents[1].Process.Signal(syscall.SIGCONT))
	again := j.next()
	if again.Name != "worker-1" || again.Attempt != 2 || again.Gen != 1 || again.Host != cast[1].Host {
		t.Errorf("%+v was started, want worker-1 for the second time in generation 1", again.word)
	}
	j.await("the restart in the record", func() bool { return j.member(1).Attempt > 1 })
	if m := j.member(1); m.Attempt != 2 || m.Budget.Used != 0 {
		t.Errorf("record %+v, want one restart and nothing charged", m)
	}
	cast[1] = again
	j.finish(agents, cast...)
}
