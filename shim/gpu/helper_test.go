package gpu

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

var quick = settings{
	timeout: 20 * time.Second, pause: time.Millisecond, maxPause: 10 * time.Millisecond, stable: time.Minute,
	patience: 5 * time.Second, root: "/",
}

// curt is for helpers that do not end when they are asked to: the patience is what is waited for.
func curt() settings {
	s := quick
	s.patience = time.Second
	return s
}

// hasty is for helpers that never answer: the time-out is what is waited for. Others have to answer within it: on busy cores a
// process takes a second or two to begin.
func hasty() settings {
	s := curt()
	s.timeout = 5 * time.Second
	return s
}

func tryOpen(t *testing.T, f fake, s settings) (*Helper, error) {
	t.Helper()
	text, err := json.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(fakeVariable, string(text))
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return open(t.Context(), self, slog.New(slog.NewTextHandler(t.Output(), nil)), s)
}

func opened(t *testing.T, f fake, s settings) *Helper {
	t.Helper()
	h, err := tryOpen(t, f, s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	return h
}

func await(t *testing.T, events <-chan Event, kind string) Event {
	t.Helper()
	timer := time.NewTimer(watchdog)
	defer timer.Stop()
	for {
		select {
		case e, ok := <-events:
			if !ok {
				t.Fatalf("events ended, want %s", kind)
			}
			if e.Kind == kind {
				return e
			}
		case <-timer.C:
			t.Fatalf("no %s within %s", kind, watchdog)
		}
	}
}

func TestHelperInventory(t *testing.T) {
	s := quick
	s.root = t.TempDir()
	place := filepath.Join(s.root, "sys/bus/pci/devices/0000:1b:00.0")
	writeFile(t, filepath.Join(place, "numa_node"), "1\n")
	writeFile(t, filepath.Join(place, "local_cpulist"), "0-15\n")
	h := opened(t, fake{}, s)
	inv, err := h.Inventory(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if inv.Driver != "550.54.15" || inv.Source != "muster-gpu" || len(inv.Devices) != 2 || h.Hello().Driver != "550.54.15" {
		t.Fatalf("got %+v", inv)
	}
	a, b := inv.Devices[0], inv.Devices[1]
	if len(a.Health) != 0 || len(a.Processes) != 1 || a.Processes[0].PID != 7 {
		t.Errorf("GPU-a: got %+v", a)
	}
	if len(b.Health) != 1 || b.Health[0].What != "row remapping pending" || b.NUMA != 1 || b.CPUs != "0-15" {
		t.Errorf("GPU-b: got %+v", b)
	}
}

func TestHelperLoads(t *testing.T) {
	got, err := opened(t, fake{}, quick).Loads(t.Context())
	if err != nil || len(got) != 2 || got["GPU-a"] != (Load{ID: "GPU-a", Use: 50, Used: 1, Total: 2}) {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestHelperStaysInOurSession(t *testing.T) {
	h := opened(t, fake{}, quick)
	pid := h.now.conn.cmd.Process.Pid
	session, err := unix.Getsid(pid)
	own, err2 := unix.Getsid(0)
	group, err3 := unix.Getpgid(pid)
	if err := errors.Join(err, err2, err3); err != nil || session != own || group != pid {
		t.Errorf("session %d, want %d; group %d, want %d (%v)", session, own, group, pid, err)
	}
}

func TestOpenErrors(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "plain"), "no program")
	script := filepath.Join(dir, "no-loader")
	writeFile(t, script, "#!/no/such/loader\n")
	empty := filepath.Join(dir, "no-format")
	writeFile(t, empty, "\x00\x01")
	for _, path := range []string{script, empty} {
		if err := os.Chmod(path, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{"", filepath.Join(dir, "missing"), filepath.Join(dir, "plain"), script, empty} {
		if _, err := Open(t.Context(), path, slog.New(slog.DiscardHandler)); !errors.Is(err, ErrNoHelper) {
			t.Errorf("%q: got %v, want ErrNoHelper", path, err)
		}
	}
	for _, tt := range []struct {
		name     string
		fake     fake
		settings settings
		is       error
		says     string
	}{
		{"no driver", fake{NoDriver: true}, quick, ErrNoDriver, "no NVIDIA driver: the driver is not loaded"},
		{"mute", fake{Mute: true}, hasty(), ErrHung, "no hello within 5s"},
		{"dies", fake{Die: OpHello}, quick, ErrEnded, "exit status 127: symbol lookup error: undefined symbol: nvmlSomething"},
		{"garbage", fake{Garbage: OpHello}, quick, ErrEnded, `it answered "NVML WARNING"`},
		{"another protocol", fake{Protocol: 7}, quick, nil, "speaks protocol 7, want 1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := tryOpen(t, tt.fake, tt.settings)
			if err == nil || tt.is != nil && !errors.Is(err, tt.is) || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("got %v, want …%s", err, tt.says)
			}
		})
	}
}

// A helper that hangs is killed, the request is answered with that, the next one by its successor.
func TestHelperHangs(t *testing.T) {
	h := opened(t, fake{Hang: OpInventory, Once: filepath.Join(t.TempDir(), "once")}, hasty())
	events := h.Watch(t.Context())
	first := h.now.conn.cmd.Process.Pid
	_, err := h.Inventory(t.Context())
	if !errors.Is(err, ErrHung) || !strings.Contains(fmt.Sprint(err), "ask muster-gpu for inventory") {
		t.Fatalf("got %v, want ErrHung", err)
	}
	await(t, events, EventHelper)
	if err := unix.Kill(first, 0); !errors.Is(err, unix.ESRCH) {
		t.Errorf("the first helper is still there (%v)", err)
	}
	if inv, err := h.Inventory(t.Context()); err != nil || len(inv.Devices) != 2 {
		t.Errorf("its successor: got %+v (%v)", inv, err)
	}
}

func TestHelperDies(t *testing.T) {
	for _, tt := range []struct {
		name string
		fake fake
		says string
	}{
		{"by itself", fake{Die: OpProcesses}, "undefined symbol: nvmlSomething"},
		{"of what it says", fake{Garbage: OpProcesses}, `it answered "NVML WARNING"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.fake.Once = filepath.Join(t.TempDir(), "once")
			h := opened(t, tt.fake, quick)
			events := h.Watch(t.Context())
			if _, err := h.Processes(t.Context()); !errors.Is(err, ErrEnded) || !strings.Contains(err.Error(), tt.says) {
				t.Fatalf("got %v, want …%s", err, tt.says)
			}
			if e := await(t, events, EventHelper); !strings.Contains(e.Text, tt.says) {
				t.Errorf("got %+v", e)
			}
			if got, err := h.Processes(t.Context()); err != nil || len(got["GPU-a"]) != 1 {
				t.Errorf("its successor: got %v (%v)", got, err)
			}
		})
	}
}

// Whoever watches hears the events of each helper.
func TestWatchSurvivesRestart(t *testing.T) {
	h := opened(t, fake{Xid: 79}, quick)
	ctx, cancel := context.WithCancel(t.Context())
	events := h.Watch(ctx)
	for range 3 {
		if e := await(t, events, EventXid); e.Xid != 79 || e.Device != "GPU-a" || e.Class() != ResetGPU {
			t.Errorf("got %+v", e)
		}
		h.mu.Lock()
		c := h.now.conn
		h.mu.Unlock()
		if err := c.cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		await(t, events, EventHelper)
	}
	cancel()
	timer := time.NewTimer(watchdog)
	defer timer.Stop()
	for {
		select {
		case _, ok := <-events:
			if !ok {
				return
			}
		case <-timer.C:
			t.Fatal("the channel stays open after its context")
		}
	}
}

// A driver that goes away: requests say so, and work again when it is back.
func TestHelperDoesNotStartAgain(t *testing.T) {
	h := opened(t, fake{}, quick)
	events := h.Watch(t.Context())
	t.Setenv(fakeVariable, `{"NoDriver": true}`)
	if err := h.now.conn.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	await(t, events, EventHelper)
	if _, err := h.Processes(t.Context()); !errors.Is(err, ErrNoDriver) && !errors.Is(err, ErrEnded) {
		t.Errorf("got %v, want the reason", err)
	}
	t.Setenv(fakeVariable, `{}`)
	if _, err := h.Processes(t.Context()); err != nil {
		t.Errorf("with the driver back: %v", err)
	}
}

func TestHelperCallerGivesUp(t *testing.T) {
	h := opened(t, fake{Hang: OpInventory}, curt())
	first := h.now.conn
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := h.Inventory(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	if h.now.conn != first {
		t.Error("the helper was replaced because its caller had no time")
	}
}

func TestHelperClose(t *testing.T) {
	t.Run("ends with its stdin", func(t *testing.T) {
		h := opened(t, fake{}, quick)
		events := h.Watch(t.Context())
		c := h.now.conn
		if err := h.Close(); err != nil {
			t.Fatal(err)
		}
		if !c.cmd.ProcessState.Success() {
			t.Errorf("it ended with %s", c.cmd.ProcessState)
		}
		if _, ok := <-events; ok {
			t.Error("an event after the end")
		}
		if _, err := h.Inventory(t.Context()); !errors.Is(err, errClosed) {
			t.Errorf("got %v, want ErrClosed", err)
		}
		if _, ok := <-h.Watch(context.Background()); ok {
			t.Error("an event for who watches after the end")
		}
	})
	t.Run("while others begin to watch", func(t *testing.T) {
		h := opened(t, fake{}, quick)
		var watching sync.WaitGroup
		for range 8 {
			watching.Go(func() {
				for range h.Watch(context.Background()) {
					t.Error("an event")
				}
			})
		}
		if err := h.Close(); err != nil {
			t.Fatal(err)
		}
		watching.Wait()
	})
	t.Run("deaf", func(t *testing.T) {
		h := opened(t, fake{Deaf: true}, curt())
		c := h.now.conn
		if err := h.Close(); err != nil {
			t.Fatal(err)
		}
		if c.cmd.ProcessState.Success() || c.abandoned {
			t.Errorf("it ended with %s", c.cmd.ProcessState)
		}
	})
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
