package main

import (
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/machine"
	"github.com/muster-agent/muster/shim/openapp"
	"github.com/muster-agent/muster/shim/status"
)

// manager hears what a service manager hears.
type manager struct {
	t    *testing.T
	conn *net.UnixConn
}

func newManager(t *testing.T, watchdogUsec string) manager {
	t.Helper()
	path := filepath.Join(t.TempDir(), "n")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetReadDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	t.Setenv("NOTIFY_SOCKET", path)
	t.Setenv("WATCHDOG_USEC", watchdogUsec)
	t.Setenv("WATCHDOG_PID", "")
	return manager{t, conn}
}

// hears waits until each of these lines was said, in this order.
func (m manager) hears(lines ...string) {
	m.t.Helper()
	for text := make([]byte, 4096); len(lines) > 0; {
		n, err := m.conn.Read(text)
		if err != nil {
			m.t.Fatalf("not said: %q: %v", lines, err)
		}
		for line := range strings.SplitSeq(string(text[:n]), "\n") {
			if len(lines) > 0 && line == lines[0] {
				lines = lines[1:]
			}
		}
	}
}

func TestNotifier(t *testing.T) {
	for _, tt := range []struct {
		name    string
		started bool
		code    int
		want    []string
	}{
		{"ran", true, 93, []string{"STATUS=here", "READY=1", "WATCHDOG=1", "STOPPING=1", "STATUS=over"}},
		{"failed before the barrier", false, 65, []string{"STATUS=here", "STOPPING=1", "STATUS=over"}},
		{"the run was over, and well", false, 0, []string{"STATUS=here", "READY=1", "STOPPING=1", "STATUS=over"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := newManager(t, "20000")
			n := newNotifier(slog.New(slog.DiscardHandler), func() outlook { return outlook{status: "here"} })
			m.hears(tt.want[0])
			if tt.started {
				n.started()
				n.started()
				m.hears(tt.want[1:3]...)
				tt.want = tt.want[2:]
			}
			n.ends(tt.code)
			n.close("over")
			m.hears(tt.want[1:]...)
			n.close("again")
			if err := m.conn.SetReadDeadline(time.Now()); err != nil {
				t.Fatal(err)
			}
			if text := make([]byte, 100); tt.started {
				if got, err := m.conn.Read(text); err == nil {
					t.Errorf("said %q after its last word", text[:got])
				}
			}
		})
	}
}

// TestNotifierThatHangs gives no sign of life when nobody can look at the agent any more.
func TestNotifierThatHangs(t *testing.T) {
	m := newManager(t, "20000")
	var hangs atomic.Bool
	stuck, over := make(chan struct{}), make(chan struct{})
	n := newNotifier(slog.New(slog.DiscardHandler), func() outlook {
		if hangs.Load() {
			close(stuck)
			<-over
		}
		return outlook{}
	})
	n.started()
	m.hears("READY=1", "WATCHDOG=1")
	hangs.Store(true)
	<-stuck
	for err := error(nil); err == nil; _, err = m.conn.Read(make([]byte, 100)) { // what was said before
		if err := m.conn.SetReadDeadline(time.Now().Add(200 * time.Millisecond)); err != nil {
			t.Fatal(err)
		}
	}
	hangs.Store(false)
	close(over)
	if err := m.conn.SetReadDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	m.hears("WATCHDOG=1")
	n.close("")
}

func TestTelling(t *testing.T) {
	start := time.Unix(1e9, 0)
	after := func(d time.Duration) time.Time { return start.Add(d) }
	says := telling{pace: time.Second, alive: 60 * time.Second}
	for _, tt := range []struct {
		after time.Duration
		outlook
		ready bool
		want  string
	}{
		{0, outlook{"staging", time.Hour}, false, "STATUS=staging\nEXTEND_TIMEOUT_USEC=20000000"},
		{time.Second, outlook{"staging", time.Hour}, false, ""},
		{10 * time.Second, outlook{"staging", time.Hour}, false, "EXTEND_TIMEOUT_USEC=20000000"},
		{20 * time.Second, outlook{"staging", 12 * time.Second}, false, "EXTEND_TIMEOUT_USEC=12000000"},
		{30 * time.Second, outlook{"staging", 2 * time.Second}, false, "EXTEND_TIMEOUT_USEC=2000000"},
		{40 * time.Second, outlook{"staging", 0}, false, ""}, // its own limit has passed: the manager's counts
		{41 * time.Second, outlook{"running", 0}, true, "STATUS=running\nWATCHDOG=1"},
		{69 * time.Second, outlook{"running", 0}, true, ""},
		{70 * time.Second, outlook{"running", 0}, true, "WATCHDOG=1"},
		{71 * time.Second, outlook{"stopping", 5 * time.Second}, true, "STATUS=stopping\nEXTEND_TIMEOUT_USEC=5000000"},
	} {
		if got := says.next(after(tt.after), tt.outlook, tt.ready); got != tt.want {
			t.Errorf("after %s: got %q, want %q", tt.after, got, tt.want)
		}
	}
}

func TestPatience(t *testing.T) {
	policy := machine.Policy{Grace: 25 * time.Second, Barrier: 10 * time.Minute}
	for _, tt := range []struct {
		name            string
		phase           machine.Phase
		ready, stopping bool
		terms           int
		leaving         bool
		stage           appdef.Seconds
		want            time.Duration // from the phase's beginning
	}{
		{name: "what is staged has its own limit", phase: machine.Staging, stage: 600, want: 10 * time.Minute},
		{name: "or none", phase: machine.Staging, want: time.Hour},
		{name: "the barrier", phase: machine.Waiting, want: 15 * time.Minute},
		{name: "the barrier of a later generation", phase: machine.Waiting, ready: true},
		{name: "a standby has none", phase: machine.Standby},
		{name: "running", phase: machine.Running, ready: true},
		{name: "stopped for a generation", phase: machine.Stopping, ready: true},
		{name: "stopped by the manager", phase: machine.Stopping, ready: true, terms: 1, want: 35 * time.Second},
		{name: "stopped by the manager while outputs are left", phase: machine.Stopping, ready: true, terms: 1, leaving: true, stage: 600, want: 10 * time.Minute},
		{name: "stopped at the barrier", phase: machine.Leaving, terms: 1, want: 15 * time.Second},
		{name: "done, outputs are left", phase: machine.Done, ready: true, stopping: true, leaving: true, stage: 60, want: time.Minute},
		{name: "outputs are left, nobody asks for a stop", phase: machine.Running, ready: true, leaving: true, stage: 60},
	} {
		a := &agent{app: &openapp.App{}, notify: &notifier{}, data: &dataManager{leaving: tt.leaving}}
		a.app.Settings.StageTimeout = tt.stage
		a.notify.ready.Store(tt.ready)
		a.notify.stopping.Store(tt.stopping)
		s := machine.State{Phase: tt.phase, Policy: policy, Terms: tt.terms}
		since := time.Unix(1e9, 0)
		if got := a.patience(s, since, since); got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.name, got, tt.want)
		}
		if got, want := a.patience(s, since, since.Add(time.Second)), max(0, tt.want-time.Second); got != want {
			t.Errorf("%s, a second later: got %s, want %s", tt.name, got, want)
		}
		if got := a.patience(s, since, since.Add(2*time.Hour)); got != 0 {
			t.Errorf("%s, two hours later: got %s, want none", tt.name, got)
		}
	}
}

func TestStatusLine(t *testing.T) {
	step := int64(1200)
	for _, tt := range []struct {
		in     status.Instance
		absent []string
		want   string
	}{
		{status.Instance{Phase: "claiming"}, nil, "claiming"},
		{status.Instance{Identity: status.Identity{Instance: "ps-0", Component: "ps"}, Phase: "staging", Cause: "inputs: 3 of\n9 files"}, nil, "ps-0 staging: inputs: 3 of 9 files"},
		{
			status.Instance{Identity: status.Identity{Instance: "ps-0", Component: "ps"}, Phase: "waiting", Starts: status.Starts{Generation: 1}},
			[]string{"worker-1", "worker-2"},
			"ps-0 waiting: generation 1, missing worker-1, worker-2",
		},
		{
			status.Instance{Identity: status.Identity{Instance: "ps-0", Component: "ps"}, Phase: "waiting", Starts: status.Starts{Generation: 1}},
			strings.Split("abcdefghij", ""), "ps-0 waiting: generation 1, missing a, b, c, d, e, f, g, h, and 2 more",
		},
		{
			status.Instance{
				Identity: status.Identity{Instance: "worker-0", Component: "worker"}, Phase: "running",
				Starts: status.Starts{Generation: 2, Attempt: 3}, Advance: status.Advance{Progress: new(0.4), CheckpointStep: &step},
			},
			nil, "worker-0 running: generation 2, attempt 3, progress 40 %, checkpoint of step 1200",
		},
	} {
		if got := statusLine(tt.in, tt.absent); got != tt.want {
			t.Errorf("got %q, want %q", got, tt.want)
		}
	}
}

func TestLastStatus(t *testing.T) {
	verdict := func(v registry.Verdict) machine.State {
		return machine.State{Terms: 1, Directive: registry.Directive{Verdict: &v}}
	}
	for _, tt := range []struct {
		final machine.State
		want  string
	}{
		{verdict(registry.Verdict{Outcome: registry.Succeeded, Cause: "all 2 instances of worker are done"}), "succeeded: all 2 instances of worker are done"},
		{verdict(registry.Verdict{Outcome: registry.Failed, Class: registry.ClassApp, Cause: "worker-0 exited with 3"}), "failed (app-error): worker-0 exited with 3"},
		{machine.State{Terms: 1}, "interrupted: it goes on when it is started again"},
		{machine.State{Cause: "index worker-0 is held"}, "index worker-0 is held"},
	} {
		if got := lastStatus(tt.final); got != tt.want {
			t.Errorf("got %q, want %q", got, tt.want)
		}
	}
	if got := errorStatus(exit.Silent{Code: 3}) + errorStatus(nil); got != "" {
		t.Errorf("of what has been said: got %q", got)
	}
	if got, want := errorStatus(exit.Usagef("agent: no\ncomponent")), "agent: no component"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
