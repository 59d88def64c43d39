//go:build gpu

package gpu_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/muster-agent/muster/registry"
)

// ran is how a program by an agent has ended.
type ran struct {
	code    int
	out     string
	verdict registry.Verdict
}

// runProgram has an agent of this tree run testdata/cuda.py with so many GPUs.
func runProgram(t *testing.T, engine string, gpus int, flags, args []string) ran {
	t.Helper()
	muster := os.Getenv("MUSTER_BINARY")
	if muster == "" {
		t.Fatal("MUSTER_BINARY is not set: scripts/test-gpu builds it")
	}
	top, err := os.MkdirTemp("", "mg-") //nolint:usetesting // short: a socket's path has 107 bytes
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(top, 0o755); err != nil { //nolint:gosec // the process's user works below
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(top); err != nil {
			t.Error(err)
		}
	})
	work := filepath.Join(top, "w")
	words := append([]string{
		"run", "--work-dir", work, "--engine", engine, "--gpus", fmt.Sprint(gpus), "--set", "muster.restart=never",
	}, flags...)
	words = append(append(words, "--", "python3", "cuda.py"), args...)
	ctx, cancel := context.WithTimeout(t.Context(), watchdog)
	defer cancel()
	cmd := exec.CommandContext(ctx, muster, words...)
	cmd.Dir, cmd.Env = "testdata", append(os.Environ(), "MUSTER_AGENT_STATE_DIR="+filepath.Join(top, "s"))
	said, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		t.Fatalf("%s: not done after %s\n%s", engine, watchdog, said)
	}
	end := ran{code: cmd.ProcessState.ExitCode()}
	log := filepath.Join(work, "log", "worker-0")
	out, failed := os.ReadFile(filepath.Join(log, "stdout.log"))
	if failed != nil {
		t.Fatalf("%s: %v, %v\n%s", engine, err, failed, said)
	}
	end.out = string(out)
	var file struct{ Verdict registry.Verdict }
	text, failed := os.ReadFile(filepath.Join(log, "exit.json"))
	if failed == nil {
		failed = json.Unmarshal(text, &file)
	}
	if failed != nil {
		t.Fatalf("%s: %v\n%s", engine, failed, said)
	}
	end.verdict = file.Verdict
	t.Logf("%s, %d GPUs, %s: exit code %d, %s%s", engine, gpus, strings.Join(args, " "), end.code, end.verdict.Cause, "\n"+end.out)
	return end
}

// fencing are the engines that hold a process off devices; the process engine only names them.
var fencing = []string{"container", "cgroup"}

// CUDA itself shows a program the device that its agent took, and no other, in every engine.
func TestRealProgramSeesItsDevice(t *testing.T) {
	inv := actual(t)
	var known []string
	for _, d := range inv.Devices {
		known = append(known, d.UUID)
	}
	for _, engine := range append(slices.Clone(fencing), "process") {
		end := runProgram(t, engine, 1, nil, nil)
		id, isDevice := strings.CutPrefix(strings.TrimSpace(end.out), "device ")
		if end.code != 0 || !isDevice || !slices.Contains(known, id) {
			t.Errorf("%s: got exit code %d and %q, want one device of %q", engine, end.code, end.out, known)
		}
	}
}

// A program without GPUs sees none, and where the engine fences also none without the variable that hides them.
func TestRealProgramWithoutGPUs(t *testing.T) {
	actual(t)
	for _, engine := range append(slices.Clone(fencing), "process") {
		if end := runProgram(t, engine, 0, nil, nil); end.code != 0 || !strings.HasPrefix(end.out, "none ") {
			t.Errorf("%s: got exit code %d and %q, want none", engine, end.code, end.out)
		}
	}
	for _, engine := range fencing {
		if end := runProgram(t, engine, 0, nil, []string{"anyway"}); end.code != 0 || !strings.HasPrefix(end.out, "none ") {
			t.Errorf("%s, past the variable: got exit code %d and %q, want none", engine, end.code, end.out)
		}
	}
}

// A program that takes more GPU memory than muster.gpu.memory is ended, and named.
func TestRealProgramTakesTooMuch(t *testing.T) {
	actual(t)
	for _, engine := range append(slices.Clone(fencing), "process") {
		end := runProgram(t, engine, 1, []string{"--set", "muster.gpu.memory=1000"}, []string{"hold", "3000"})
		if end.code != 137 || end.verdict.Class != registry.ClassOOM || !strings.Contains(end.verdict.Cause, "muster.gpu.memory is 1000 MB") {
			t.Errorf("%s: got exit code %d, %+v", engine, end.code, end.verdict)
		}
	}
}
