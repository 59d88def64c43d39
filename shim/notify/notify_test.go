package notify

import (
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
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
			n := New(slog.New(slog.DiscardHandler), func() Message { return Message{Status: "here"} })
			m.hears(tt.want[0])
			if tt.started {
				n.Started()
				n.Started()
				m.hears(tt.want[1:3]...)
				tt.want = tt.want[2:]
			}
			n.Ends(tt.code)
			n.Close("over")
			m.hears(tt.want[1:]...)
			n.Close("again")
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
	n := New(slog.New(slog.DiscardHandler), func() Message {
		if hangs.Load() {
			close(stuck)
			<-over
		}
		return Message{}
	})
	n.Started()
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
	n.Close("")
}

func TestTelling(t *testing.T) {
	start := time.Unix(1e9, 0)
	after := func(d time.Duration) time.Time { return start.Add(d) }
	says := telling{pace: time.Second, alive: 60 * time.Second}
	for _, tt := range []struct {
		after time.Duration
		Message
		ready bool
		want  string
	}{
		{0, Message{"staging", time.Hour}, false, "STATUS=staging\nEXTEND_TIMEOUT_USEC=20000000"},
		{time.Second, Message{"staging", time.Hour}, false, ""},
		{10 * time.Second, Message{"staging", time.Hour}, false, "EXTEND_TIMEOUT_USEC=20000000"},
		{20 * time.Second, Message{"staging", 12 * time.Second}, false, "EXTEND_TIMEOUT_USEC=12000000"},
		{30 * time.Second, Message{"staging", 2 * time.Second}, false, "EXTEND_TIMEOUT_USEC=2000000"},
		{40 * time.Second, Message{"staging", 0}, false, ""}, // its own limit has passed: the manager's counts
		{41 * time.Second, Message{"running", 0}, true, "STATUS=running\nWATCHDOG=1"},
		{69 * time.Second, Message{"running", 0}, true, ""},
		{70 * time.Second, Message{"running", 0}, true, "WATCHDOG=1"},
		{71 * time.Second, Message{"stopping", 5 * time.Second}, true, "STATUS=stopping\nEXTEND_TIMEOUT_USEC=5000000"},
	} {
		if got := says.next(after(tt.after), tt.Message, tt.ready); got != tt.want {
			t.Errorf("after %s: got %q, want %q", tt.after, got, tt.want)
		}
	}
}
