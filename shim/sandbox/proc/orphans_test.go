package proc

import (
	"errors"
	"os/exec"
	"syscall"
	"testing"
)

func TestKillOrphansTouchesNoStranger(t *testing.T) {
	facts, err := SelfFacts()
	if err != nil {
		t.Fatal(err)
	}
	stranger := exec.Command("sleep", "1000")
	if err := stranger.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = stranger.Process.Kill(), stranger.Wait() })
	h := Host{}
	s, err := h.Stat(stranger.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	same := ID{s.PID, s.Start}
	for _, c := range []struct {
		name string
		left Leftover
		want error
	}{
		{"other start", Leftover{Boot: facts.Boot, PidNS: facts.PidNS, App: ID{s.PID, s.Start - 1}, Guard: ID{s.PID, s.Start + 1}}, nil},
		{"other boot", Leftover{Boot: "another", PidNS: facts.PidNS, App: same}, nil},
		{"other pid namespace", Leftover{Boot: facts.Boot, PidNS: "1", App: same}, errElsewhere},
		{"other variables", Leftover{Boot: facts.Boot, PidNS: facts.PidNS, Env: map[string]string{"PATH": "nowhere"}}, nil},
		{"nothing recorded", Leftover{Boot: facts.Boot, PidNS: facts.PidNS}, nil},
	} {
		if err := h.KillOrphans(t.Context(), c.left); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
	}
	if again, err := h.Stat(s.PID); err != nil || !again.Alive() {
		t.Errorf("the stranger is gone: %+v, %v", again, err)
	}
	if err := h.KillOrphans(t.Context(), Leftover{Boot: facts.Boot, PidNS: facts.PidNS, App: same}); err != nil {
		t.Errorf("the recorded one: %v", err)
	}
	if state, err := stranger.Process.Wait(); err != nil || state.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Errorf("the recorded one ended with %v, %v", state, err)
	}
}
