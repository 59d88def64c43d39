package gpu_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/muster-agent/muster/cmd/muster-gpu/nvmltest"
	"github.com/muster-agent/muster/shim/gpu"
)

// hasDriver tells that this machine could run the tests of the tag gpu.
func hasDriver() bool {
	_, err := os.Stat("/proc/driver/nvidia/version")
	return err == nil
}

// The real helper, where nothing is: it says so and does not crash.
func TestNoDriver(t *testing.T) {
	if hasDriver() {
		t.Log("there is a driver: scripts/test-gpu tests the rest")
		return
	}
	path := built(t)
	for _, input := range []string{`{"id":1,"op":"hello"}` + "\n", ""} {
		var out, words bytes.Buffer
		cmd := exec.CommandContext(t.Context(), path)
		cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(input), &out, &words
		err := cmd.Run()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != 69 {
			t.Errorf("%q: got %v, want exit status 69", input, err)
		}
		want := ""
		if input != "" {
			want = `{"id":1,"error":{"code":"no-driver","text":"load libnvidia-ml.so.1: not found: no NVIDIA driver is installed here"}}` + "\n"
		}
		if out.String() != want || words.String() != "muster-gpu: load libnvidia-ml.so.1: not found: no NVIDIA driver is installed here\n" {
			t.Errorf("%q: got %q and %q", input, &out, &words)
		}
	}
	_, err := gpu.Open(t.Context(), path, slog.New(slog.DiscardHandler))
	if !errors.Is(err, gpu.ErrNoDriver) || !strings.Contains(err.Error(), "no NVIDIA driver is installed here") {
		t.Errorf("got %v, want ErrNoDriver", err)
	}
	cmd := exec.CommandContext(t.Context(), path, "--what")
	if out, err := cmd.CombinedOutput(); cmd.ProcessState.ExitCode() != 64 || !strings.Contains(string(out), "--what") {
		t.Errorf("an unknown argument: got %s (%v)", out, err)
	}
}

func TestMockedHost(t *testing.T) {
	h := mocked(t, nvmltest.Host{
		Model: "h100", Links: "islands", UsedMB: map[int]int{6: 3000},
		Faults:    nvmltest.Faults{DoubleBit: map[int]uint64{1: 1}, RemapPending: []int{4}, Recovery: map[int]uint32{5: 1}},
		Processes: map[int][]gpu.Process{6: {{PID: 4711, UsedMB: 3000, Kind: "compute", GPUInstance: -1}}},
	})
	inv, err := h.Inventory(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(inv.Devices) != 8 || inv.Driver != "550.54.15" || inv.CUDA != "12.4" || inv.Source != "muster-gpu" {
		t.Fatalf("got %+v", inv)
	}
	for i, want := range map[int]string{1: "double-bit memory errors", 4: "row remapping pending", 5: "recovery action needed"} {
		if got := inv.Devices[i].Health; len(got) != 1 || got[0].What != want || !got[0].Refuses() {
			t.Errorf("GPU %d: got %+v, want %s", i, got, want)
		}
	}
	chosen, err := gpu.Choose(inv.Devices, gpu.Want{Count: 3, Type: "H100"})
	if err != nil || len(chosen) != 3 || chosen[0].Index != 0 || chosen[2].Index != 3 {
		t.Errorf("got %v (%v), want 0, 2, 3", chosen, err)
	}
	if found := gpu.Gate(chosen, gpu.Policy{}); len(found) != 0 {
		t.Errorf("the gate holds back healthy devices: %v", found)
	}
	found := gpu.Gate(inv.Devices, gpu.Policy{})
	text := ""
	for _, f := range found {
		text += f.String() + "\n"
	}
	if len(found) != 4 || !strings.Contains(text, "process 4711 with 3000 MB") || !strings.Contains(text, "the driver asks for gpu-reset") {
		t.Errorf("got %s", text)
	}
	if _, err := gpu.Choose(inv.Devices, gpu.Want{Count: 6}); !errors.Is(err, gpu.ErrTooFew) || !strings.Contains(err.Error(), "GPU 1 double-bit memory errors") {
		t.Errorf("got %v", err)
	}
}

// An Xid while running: from the driver's event to its meaning.
func TestXid(t *testing.T) {
	trigger := filepath.Join(t.TempDir(), "now")
	h := mocked(t, nvmltest.Host{Events: []nvmltest.Trigger{{Device: 3, Kind: gpu.EventXid, Xid: 79, File: trigger}}})
	events := h.Watch(t.Context())
	if err := os.WriteFile(trigger, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	e := next(t, events)
	if e.Kind != gpu.EventXid || e.Device != nvmltest.UUID(3) || e.Class() != gpu.ResetGPU || e.Finding().What != "Xid 79 fallen off the bus" {
		t.Errorf("got %+v: %s", e, e.Finding())
	}
}

func next(t *testing.T, events <-chan gpu.Event) gpu.Event {
	t.Helper()
	timer := time.NewTimer(watchdog)
	defer timer.Stop()
	select {
	case e, ok := <-events:
		if !ok {
			t.Fatal("no more events")
		}
		return e
	case <-timer.C:
		t.Fatalf("no event within %s", watchdog)
	}
	return gpu.Event{}
}

// NVML ends the process: the request says so, and its successor answers and goes on watching.
func TestHelperDies(t *testing.T) {
	dir := t.TempDir()
	trigger := filepath.Join(dir, "now")
	h := mocked(t, nvmltest.Host{
		Die: gpu.OpProcesses, Once: filepath.Join(dir, "once"), Events: []nvmltest.Trigger{{Device: 1, Kind: gpu.EventECC, File: trigger}},
	})
	events := h.Watch(t.Context())
	if _, err := h.Inventory(t.Context()); !errors.Is(err, gpu.ErrEnded) || !strings.Contains(err.Error(), "symbol lookup error") {
		t.Fatalf("got %v, want ErrEnded", err)
	}
	if e := next(t, events); e.Kind != gpu.EventHelper {
		t.Errorf("got %+v", e)
	}
	if inv, err := h.Inventory(t.Context()); err != nil || len(inv.Devices) != 8 {
		t.Errorf("got %d devices (%v)", len(inv.Devices), err)
	}
	if err := os.WriteFile(trigger, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if e := next(t, events); e.Kind != gpu.EventECC || e.Index != 1 {
		t.Errorf("got %+v", e)
	}
}

// A GPU that falls off the bus and takes the helper with it: the next helper tells.
func TestLostWithItsHelper(t *testing.T) {
	h := mocked(t, nvmltest.Host{})
	inv, err := h.Inventory(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	events := h.Watch(t.Context())
	sick, err := json.Marshal(nvmltest.Host{Faults: nvmltest.Faults{
		Lost: []int{5}, Recovery: map[int]uint32{2: 1}, DoubleBit: map[int]uint64{3: 1},
	}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(os.Getenv(nvmltest.Environment), sick, 0o600); err != nil {
		t.Fatal(err)
	}
	kill(t, helperOf(t))
	want := map[string]string{"helper ": "", "unavailable " + inv.Devices[5].UUID: "", "recovery " + inv.Devices[2].UUID: "", "ecc " + inv.Devices[3].UUID: ""}
	for range 4 {
		e := next(t, events)
		if _, ok := want[e.Kind+" "+e.Device]; !ok {
			t.Errorf("got %+v", e)
		}
		delete(want, e.Kind+" "+e.Device)
	}
	if len(want) > 0 {
		t.Errorf("not heard of: %v", want)
	}
	after, err := h.Inventory(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if d := after.Devices[5]; len(d.Health) != 1 || d.Health[0].What != "fallen off the bus" || len(after.Devices[4].Health) != 0 {
		t.Errorf("got %+v", d)
	}
}

// A call that never returns costs its time-out, and the helper its life.
func TestHelperHangs(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for a time-out of 10 s")
	}
	h := mocked(t, nvmltest.Host{Hang: gpu.OpHealth, Once: filepath.Join(t.TempDir(), "once")})
	if _, err := h.Inventory(t.Context()); !errors.Is(err, gpu.ErrHung) || !strings.Contains(err.Error(), "ask muster-gpu for health") {
		t.Fatalf("got %v, want ErrHung", err)
	}
	if inv, err := h.Inventory(t.Context()); err != nil || len(inv.Devices) != 8 {
		t.Errorf("got %d devices (%v)", len(inv.Devices), err)
	}
}

// Two agents take different devices; what a killed one held is free at once, and its helper is gone.
func TestTwoAgents(t *testing.T) {
	// devices that nobody else on this machine claims
	host := nvmltest.Host{Count: 5, First: 100_000_000 + os.Getpid()*10}
	h := mocked(t, host) // it sets the host for the agents, too
	first, a := agent(t)
	_, b := agent(t)
	if len(a.IDs) != 2 || len(b.IDs) != 2 || slices.ContainsFunc(a.IDs, func(id string) bool { return slices.Contains(b.IDs, id) }) {
		t.Fatalf("got %v and %v", a.IDs, b.IDs)
	}
	inv, err := h.Inventory(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := gpu.Claim(t.Context(), inv.Devices, gpu.Want{Count: 2}); !errors.Is(err, gpu.ErrTooFew) {
		t.Errorf("a third: got %v, want ErrTooFew", err)
	}
	if len(a.Children) != 1 {
		t.Fatalf("the agent has the children %v", a.Children)
	}
	helper, err := strconv.Atoi(a.Children[0])
	if err != nil {
		t.Fatal(err)
	}
	fd, err := unix.PidfdOpen(helper, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if err := first.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := first.Wait(); err == nil {
		t.Error("the agent ended in order")
	}
	poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	n, err := unix.Poll(poll, int(watchdog.Milliseconds()))
	for errors.Is(err, unix.EINTR) {
		n, err = unix.Poll(poll, int(watchdog.Milliseconds()))
	}
	if n != 1 || err != nil {
		t.Errorf("the helper of a killed agent lives on (%v)", err)
	}
	held, err := gpu.Claim(t.Context(), inv.Devices, gpu.Want{Count: 3})
	if err != nil {
		t.Fatal(err)
	}
	if err := held.Release(); err != nil {
		t.Error(err)
	}
}

// helperOf is the pid of this process's only child.
func helperOf(t *testing.T) int {
	t.Helper()
	var found []int
	tasks, err := filepath.Glob("/proc/self/task/*/children")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range tasks {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // a thread that has ended
		}
		for word := range strings.FieldsSeq(string(text)) {
			pid, err := strconv.Atoi(word)
			if err != nil {
				t.Fatal(err)
			}
			found = append(found, pid)
		}
	}
	if len(found) != 1 {
		t.Fatalf("this process has the children %v, want one", found)
	}
	return found[0]
}

func kill(t *testing.T, pid int) {
	t.Helper()
	if err := unix.Kill(pid, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
}
