package member

import (
	"bytes"
	"context"
	"log/slog"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/prepare"
	"github.com/muster-agent/muster/shim/sandbox/proc"
	"github.com/muster-agent/muster/shim/status"
)

// TestAttackRecordNamesAProcessOfTheHost: whoever writes the registry names any process of the host as the guard of a
// lost agent. The next agent of the index takes the index and kills nothing.
func TestAttackRecordNamesAProcessOfTheHost(t *testing.T) {
	own, err := proc.SelfFacts()
	if err != nil {
		t.Fatal(err)
	}
	victim := exec.CommandContext(t.Context(), "sleep", "600")
	if err := victim.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		_ = victim.Wait() // killed, in any case
		close(ended)
	}()
	defer func() {
		_ = victim.Process.Kill()
		<-ended
	}()
	is, err := proc.Host{}.Stat(victim.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	m := New(t.Context(), Config{
		AppID: "d1", WorkDir: t.TempDir(), Log: slog.New(slog.NewTextHandler(&log, nil)),
		Hooks: Hooks{
			ClearDead: func(context.Context) {},
			KillLeft: func(ctx context.Context, in registry.Instance, inc string) (bool, error) {
				left := prepare.Left{State: status.Dir(t.TempDir()), App: "d1", Instance: in, Inc: inc}
				return prepare.KillLeft(ctx, left, slog.New(slog.DiscardHandler))
			},
		},
	})
	forged := registry.Member{Process: registry.Process{
		Machine: own.Machine, Boot: own.Boot, PidNS: own.PidNS, Pid: 1, Start: 1,
		Guard: &registry.ProcessRef{Pid: is.PID, Start: is.Start},
	}}
	if err := m.clean(t.Context(), registry.Instance{Component: "worker"}, forged); err != nil {
		t.Errorf("the index is not taken: %v", err)
	}
	facts := proc.Facts{Machine: own.Machine, Boot: own.Boot, PidNS: own.PidNS, PID: is.PID, Start: is.Start}
	if live, err := (proc.Host{}).AliveHere(facts); err != nil || live != proc.Alive {
		t.Errorf("the process that the registry named is %s, %v", live, err)
	}
	if text := log.String(); !strings.Contains(text, "level=WARN") || !strings.Contains(text, strconv.Itoa(is.PID)) {
		t.Errorf("the operator is not told which process was left and why:\n%s", text)
	}
}
