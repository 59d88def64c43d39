package registrytest_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"testing"

	"github.com/muster-agent/muster/registry"
)

func withoutCancel(r *http.Request) context.Context { return context.WithoutCancel(r.Context()) }

// checkpoint: what all ranks have stored is where the next generation resumes; five are remembered.
func checkpoint(t *testing.T, s server) {
	a := newApp(t, s)
	all := a.assemble(t, 1)
	for _, g := range all {
		for step := int64(1); step <= 6; step++ {
			must(t, g.membership.Checkpoint(soon(t), registry.CheckpointStep{Step: step, URI: "file:/c", SHA256: "sum"}))
		}
	}
	must(t, all[0].membership.Checkpoint(soon(t), registry.CheckpointStep{Step: 7, URI: "file:/c7", SHA256: "sum7"})) // nobody else has it
	e, _, _ := rawOf(t, a.url).get(a.facts.App + "/checkpoint/worker/0")
	var c registry.Checkpoint
	must(t, json.Unmarshal(e.Value, &c))
	if len(c.Steps) != 5 || c.Steps[4].Step != 7 || c.Steps[0].Step != 3 || c.Inc != all[0].me.Member.Inc || c.Gen != 1 {
		t.Errorf("worker-0's checkpoints: %+v", c)
	}
	all[1].fail(1, registry.ClassApp)
	all.release(2)
	if d := all[0].membership.Directive(); d.Resume == nil || *d.Resume != 6 {
		t.Errorf("resumes from %v, want 6", d.Resume)
	}
	must(t, all[0].membership.GiveUp(soon(t), 6)) // step 7 is of a branch that nobody else has
	must(t, all[0].membership.GiveUp(soon(t), 6))
	must(t, all[0].membership.Store(soon(t), 2, registry.CheckpointStep{Step: 8, URI: "file:/c8", Shared: true}, registry.CheckpointStep{Step: 9, Shared: true}))
	must(t, all[0].membership.Forget(soon(t), "file:/c8"))
	must(t, all[0].membership.Store(soon(t), 2, registry.CheckpointStep{Step: 10, URI: "file:/c10"}, registry.CheckpointStep{Step: 11, URI: "file:/c11"}))
	must(t, all[0].membership.Trim(soon(t), 6))
	must(t, all[1].membership.Condemn(soon(t), registry.BadCopy{URI: "file:/c10"}))
	must(t, all[1].membership.Condemn(soon(t), registry.BadCopy{URI: "file:/c10"}))
	if err := all[0].membership.Store(soon(t), 1, registry.CheckpointStep{Step: 99}); !errors.Is(err, registry.ErrOvertaken) {
		t.Errorf("of generation 1 in generation 2: %v, want it refused", err)
	}
	stored, err := all[1].membership.Stored(soon(t))
	must(t, err)
	var steps []int64
	for _, one := range stored[all[0].membership.Instance()].Steps {
		steps = append(steps, one.Step)
	}
	if want := []int64{5, 6, 9, 10, 11}; !slices.Equal(steps, want) || len(stored) != len(all) {
		t.Errorf("stored: %v of %d instances, want %v of all", steps, len(stored), want)
	}
	st, err := all[0].client.Status(soon(t), a.facts.App)
	must(t, err)
	for _, m := range st.Members {
		if m.Instance == all[0].membership.Instance() && (m.Step == nil || *m.Step != 11) {
			t.Errorf("status: newest step %v, want 11", m.Step)
		}
	}
	if sound := registry.Sound(stored)[all[0].membership.Instance()].Steps; len(sound) != 4 || sound[3].Step != 11 || sound[2].Step != 9 {
		t.Errorf("sound: %v, want those stored without step 10, which worker-1 found to be bad", sound)
	}
	if all[1].membership.Founded().IsZero() || !all[1].membership.Founded().Equal(all[0].membership.Founded()) {
		t.Errorf("founded %v and %v", all[0].membership.Founded(), all[1].membership.Founded())
	}
}

// lateCheckpoint: a commit that is still on its way when its member acknowledges the next generation is
// refused when it arrives.
func lateCheckpoint(t *testing.T, s server) {
	a := newApp(t, s)
	w := newWire(t, s)
	first := a.agent(t, "worker-0").join()
	a.url = w.URL()
	late := a.agent(t, "worker-1").join()
	a.url = s.URL()
	all := gang{first, late, a.agent(t, "ps-0").join()}
	all.release(1)

	held := &encounter{hold: make(chan struct{}), code: make(chan int, 1)}
	met := make(chan struct{})
	w.when(func(r *http.Request, body string) *encounter {
		if !isTxn(r, body, "cas", a.facts.App+"/checkpoint/worker/1") {
			return nil
		}
		w.meet = nil // the wire is locked
		close(met)
		return held
	})
	ctx, giveUp := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- late.membership.Checkpoint(ctx, registry.CheckpointStep{Step: 5, URI: "file:/late", SHA256: "sum"})
	}()
	<-met
	giveUp()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("given up: %v", err)
	}
	first.fail(1, registry.ClassApp)
	late.told(2, registry.ActWait)
	late.ready(2)
	close(held.hold)
	if code := <-held.code; code != http.StatusConflict {
		t.Errorf("the late commit was answered with %d, want 409", code)
	}
	if _, _, there := rawOf(t, a.url).get(a.facts.App + "/checkpoint/worker/1"); there {
		t.Error("the late commit is there")
	}
}

// lostAnswers: every write is done, its answer is lost once, and still it counts once.
func lostAnswers(t *testing.T, s server) {
	a := newApp(t, s)
	w := newWire(t, s)
	a.url = w.URL()
	lost := map[string]int{}
	w.when(func(r *http.Request, body string) *encounter {
		for _, write := range []string{"directive", "members/worker/0", "members/ps/0", "roster", "checkpoint/worker/0"} {
			verb := "cas"
			if write == "directive" {
				verb = "lock"
			}
			if isTxn(r, body, verb, a.facts.App+"/"+write) {
				if lost[write]++; lost[write]%2 == 1 {
					return &encounter{lose: true}
				}
			}
		}
		return nil
	})
	all := a.assemble(t, 1)
	must(t, all[0].membership.Checkpoint(soon(t), registry.CheckpointStep{Step: 1, URI: "file:/c", SHA256: "sum"}))
	all[1].fail(1, registry.ClassApp)
	all.release(2)
	if d := all[0].membership.Directive(); d.Budget.Used != 1 {
		t.Errorf("budget %+v: one failure counts once", d.Budget)
	}
	all[0].finish(2)
	all[1].finish(2)
	d := all[2].told(2, registry.ActStop)
	if d.Verdict == nil || d.Verdict.Outcome != registry.Succeeded {
		t.Errorf("verdict %+v", d.Verdict)
	}
	all.each((*agent).leave)
	w.when(nil)
	if lost["directive"] < 4 || lost["members/worker/0"] < 4 || lost["checkpoint/worker/0"] == 0 {
		t.Errorf("answers lost: %v", lost)
	}
}
