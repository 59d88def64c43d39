package netns_test

import (
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/muster-agent/muster/tests/netns"
)

// refused is how long a dial into the void is waited for; watchdog ends what has gone wrong.
const (
	refused  = 300 * time.Millisecond
	watchdog = 30 * time.Second
)

func TestHostsReachEachOtherUnlessCut(t *testing.T) {
	n := netns.New(t, 3)
	for i := range 3 {
		serve(t, n, i)
	}
	for from := range 3 {
		for to := range 3 {
			if err := dial(n, from, to, watchdog); err != nil {
				t.Errorf("%d to %d: %v", from, to, err)
			}
		}
	}

	n.Cut(1)
	for _, pair := range [][2]int{{0, 1}, {1, 0}, {1, 2}} {
		if err := dial(n, pair[0], pair[1], refused); err == nil {
			t.Errorf("%d reaches %d although 1 is cut off", pair[0], pair[1])
		}
	}
	if err := dial(n, 0, 2, watchdog); err != nil {
		t.Errorf("0 to 2 while 1 is cut off: %v", err)
	}
	if err := dial(n, 1, 1, watchdog); err != nil {
		t.Errorf("1 to itself while cut off: %v", err)
	}

	n.Heal(1)
	for start := time.Now(); dial(n, 0, 1, refused) != nil; {
		if time.Since(start) > watchdog {
			t.Fatal("0 does not reach 1 after healing")
		}
	}
}

func TestBlockedHostsReachTheOthers(t *testing.T) {
	n := netns.New(t, 3)
	for i := range 3 {
		serve(t, n, i)
	}
	n.Block(0, 2)
	for _, pair := range [][2]int{{0, 2}, {2, 0}} {
		if err := dial(n, pair[0], pair[1], refused); err == nil {
			t.Errorf("%d reaches %d although they are blocked", pair[0], pair[1])
		}
	}
	for _, pair := range [][2]int{{0, 1}, {1, 0}, {1, 2}, {2, 1}} {
		if err := dial(n, pair[0], pair[1], watchdog); err != nil {
			t.Errorf("%d to %d: %v", pair[0], pair[1], err)
		}
	}
	n.Unblock(0, 2)
	if err := dial(n, 0, 2, watchdog); err != nil {
		t.Errorf("0 to 2 afterwards: %v", err)
	}
}

func TestCommandsRunOnTheirHost(t *testing.T) {
	n := netns.New(t, 2)
	for i := range 2 {
		out, err := n.Exec(i, "ip", "-4", "-o", "addr", "show", "dev", "eth0")
		if err != nil || !strings.Contains(out, " "+n.Addr(i)+"/24 ") {
			t.Errorf("host %d: got %q, %v, want %s", i, out, err, n.Addr(i))
		}
	}
	if out, err := n.Exec(0, "false"); err == nil {
		t.Errorf("false succeeded: %s", out)
	}
}

func TestDelay(t *testing.T) {
	n := netns.New(t, 2)
	serve(t, n, 1)
	const delay = 200 * time.Millisecond
	if err := n.Delay(0, delay); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	if err := dial(n, 0, 1, watchdog); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(start); took < delay {
		t.Errorf("a handshake over a link of %s took %s", delay, took)
	}

	n.Cut(0)
	if err := dial(n, 0, 1, 2*delay+refused); err == nil {
		t.Error("a delayed host reaches the other although it is cut off")
	}
	n.Heal(0)
	if err := n.Delay(0, 0); err != nil {
		t.Fatalf("end the delay: %v", err)
	}
	if err := dial(n, 0, 1, watchdog); err != nil {
		t.Errorf("after the delay: %v", err)
	}
}

func TestADelayedLinkLosesNothing(t *testing.T) {
	n := netns.New(t, 2)
	if err := n.Delay(0, 5*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	var l net.Listener
	if err := n.Do(1, func() (err error) { l, err = net.Listen("tcp4", n.Addr(1)+":7001"); return err }); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	const size = 8 << 20
	got := make(chan int64, 1)
	go func() {
		c, err := l.Accept()
		if err != nil {
			got <- -1
			return
		}
		defer c.Close()
		count, _ := io.Copy(io.Discard, c)
		got <- count
	}()
	err := n.Do(0, func() error {
		c, err := net.DialTimeout("tcp4", l.Addr().String(), watchdog)
		if err != nil {
			return err
		}
		_, err = c.Write(make([]byte, size))
		return errors.Join(err, c.Close())
	})
	if count := <-got; err != nil || count != size {
		t.Errorf("got %d bytes, %v, want %d", count, err, size)
	}
}

func TestNothingIsLeft(t *testing.T) {
	var name string
	var sleeper *exec.Cmd
	t.Run("inner", func(t *testing.T) {
		n := netns.New(t, 2)
		name = n.Name(0)
		sleeper = n.Command(0, "sh", "-c", "echo there; exec sleep 1000")
		out, err := sleeper.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := sleeper.Start(); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(out, make([]byte, len("there"))); err != nil {
			t.Fatal(err)
		}
	})
	if name == "" {
		t.Skip("inner could not run")
	}
	err := sleeper.Wait()
	if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Errorf("the process on host 0: got %v, want it killed", err)
	}
	left, err := filepath.Glob("/run/netns/" + strings.TrimSuffix(name, "-0") + "*")
	if err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

func TestANetworkKilledWithItsTestIsSweptByTheNext(t *testing.T) {
	n := netns.New(t, 1)
	const stale = "muster-test-999999999-1" // above any pid_max
	if out, err := n.Exec(0, "ip", "netns", "add", stale); err != nil {
		t.Fatal(err, out)
	}
	netns.New(t, 1)
	if _, err := os.Stat("/run/netns/" + stale); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is still there: %v", stale, err)
	}
}

// serve answers on port 7000 of host i until the test ends.
func serve(t *testing.T, n *netns.Net, i int) {
	t.Helper()
	var l net.Listener
	if err := n.Do(i, func() (err error) { l, err = net.Listen("tcp4", n.Addr(i)+":7000"); return err }); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(c, n.Name(i))
			c.Close()
		}
	}()
}

// dial connects from one host to another and checks who answers.
func dial(n *netns.Net, from, to int, timeout time.Duration) error {
	return n.Do(from, func() error {
		c, err := net.DialTimeout("tcp4", n.Addr(to)+":7000", timeout)
		if err != nil {
			return err
		}
		defer c.Close()
		b, err := io.ReadAll(c)
		if err == nil && string(b) != n.Name(to) {
			err = errors.New("answered by " + string(b))
		}
		return err
	})
}
