package ports

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

func held(t *testing.T, r Ranges, want []Want, prefer map[string]int) *Held {
	t.Helper()
	h, err := Claim(r, want, prefer)
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

func ranges(t *testing.T, text string) Ranges {
	t.Helper()
	r, err := ParseRanges(text)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// listen is what a server does: SO_REUSEADDR, which package net always sets.
func listen(address string) (net.Listener, error) {
	return (&net.ListenConfig{}).Listen(context.Background(), "tcp", address)
}

func TestClaimersInManyProcessesNeverMeet(t *testing.T) {
	const processes, each = 8, 25
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	type claimer struct {
		cmd *exec.Cmd
		in  io.Closer
		out *bufio.Reader
	}
	var all []claimer
	for range processes {
		cmd := exec.Command(exe, "as-claimer", "22000-22199", strconv.Itoa(each))
		cmd.Stderr = t.Output()
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		all = append(all, claimer{cmd, in, bufio.NewReader(out)})
	}
	holder := map[string]int{}
	for i, c := range all {
		line, err := c.out.ReadString('\n')
		if err != nil {
			t.Errorf("claimer %d: %v", i, err)
		}
		for p := range strings.FieldsSeq(line) {
			if other, twice := holder[p]; twice {
				t.Errorf("port %s is held by claimers %d and %d", p, other, i)
			}
			holder[p] = i
		}
	}
	// The range is exactly large enough: all of it is given out.
	if len(holder) != processes*each {
		t.Errorf("%d ports in all, want %d", len(holder), processes*each)
	}
	if _, err := Claim(ranges(t, "22000-22199"), []Want{{Name: "late"}}, nil); !errors.Is(err, ErrNone) {
		t.Errorf("one more claim: %v, want ErrNone", err)
	}
	for _, c := range all {
		c.in.Close()
		if err := c.cmd.Wait(); err != nil {
			t.Error(err)
		}
	}
	held(t, ranges(t, "22000-22199"), []Want{{Name: "after their end"}}, nil)
}

func TestHolderKeepsStrangersOut(t *testing.T) {
	h := held(t, ranges(t, "22300-22399"), []Want{{Name: "a"}}, nil)
	n := h.Ports()["a"]
	for _, host := range []string{"", "0.0.0.0", "127.0.0.1", "[::]", "[::1]"} {
		if l, err := listen(fmt.Sprintf("%s:%d", host, n)); err == nil {
			l.Close()
			t.Errorf("a stranger listens on %s:%d", host, n)
		} else if !errors.Is(err, syscall.EADDRINUSE) && host != "[::1]" {
			t.Errorf("%s: %v", host, err)
		}
	}
	if err := h.Release(); err != nil {
		t.Fatal(err)
	}
	l, err := listen(":" + strconv.Itoa(n))
	if err != nil {
		t.Fatalf("the process itself: %v", err)
	}
	defer l.Close()
	// Released to the process is not free for another agent, even if the process never binds.
	if _, err := Claim(Ranges{{n, n}}, []Want{{Name: "b"}}, nil); !errors.Is(err, ErrNone) {
		t.Errorf("another agent: %v, want ErrNone", err)
	}
}

func TestRebindAfterTheProcessHadConnections(t *testing.T) {
	h := held(t, ranges(t, "22400-22499"), []Want{{Name: "a"}}, nil)
	n := h.Ports()["a"]
	if err := h.Release(); err != nil {
		t.Fatal(err)
	}
	timeWait(t, n)
	if fd, err := holdPort(n, false); err == nil {
		unix.Close(fd)
		t.Fatal("no old connection is there: the test shows nothing")
	}
	if err := h.Rebind(); err != nil {
		t.Fatal(err)
	}
	if l, err := listen(":" + strconv.Itoa(n)); err == nil {
		l.Close()
		t.Error("a stranger listens on a port that was bound again")
	}
	if err := errors.Join(h.Rebind(), h.Release()); err != nil {
		t.Fatal(err)
	}
	l, err := listen(":" + strconv.Itoa(n))
	if err != nil {
		t.Fatalf("the next process: %v", err)
	}
	l.Close()
	// A replacement on the same host gets the dead one's port all the same.
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	next := held(t, ranges(t, "22400-22499"), []Want{{Name: "a"}}, map[string]int{"a": n})
	if got := next.Ports()["a"]; got != n {
		t.Errorf("replacement got %d, want %d", got, n)
	}
}

// timeWait leaves port n with a connection that its server closed first.
func timeWait(t *testing.T, n int) {
	t.Helper()
	l, err := listen(fmt.Sprintf("127.0.0.1:%d", n))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	client, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	server, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	server.Close()
	if _, err := client.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Fatalf("read: %v", err)
	}
}

func TestRebindNamesAStranger(t *testing.T) {
	h := held(t, ranges(t, "22500-22599"), []Want{{Name: "global.ps.port"}, {Name: "b"}}, nil)
	n := h.Ports()["global.ps.port"]
	if err := h.Release(); err != nil {
		t.Fatal(err)
	}
	l, err := listen(":" + strconv.Itoa(n))
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("bind port %d (global.ps.port) again: address already in use", n)
	if err := h.Rebind(); err == nil || err.Error() != want || !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("got %v, want %s", err, want)
	}
	l.Close()
	if err := h.Rebind(); err != nil {
		t.Errorf("after the stranger's end: %v", err)
	}
}

func TestNumbersAskedForComeFirst(t *testing.T) {
	r := ranges(t, "22600-22609")
	// All starts at the same place: without order, the first want would take the others' numbers.
	zero := func(int) int { return 0 }
	h, err := claim(r, []Want{{Name: "any"}, {Name: "default", Number: 22600}, {Name: "old", Number: 22605}}, map[string]int{"old": 22601}, zero)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	if diff := cmp.Diff(map[string]int{"any": 22602, "default": 22600, "old": 22601}, h.Ports()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	// All taken: any other will do, outside the range included when it is asked for by number.
	second, err := claim(r, []Want{{Name: "default", Number: 22600}, {Name: "old"}, {Name: "far", Number: 22700}}, map[string]int{"old": 22601}, zero)
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	if diff := cmp.Diff(map[string]int{"default": 22603, "old": 22604, "far": 22700}, second.Ports()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// The old connections of an earlier run do not make a default another.
func TestNumberOfAnEarlierServer(t *testing.T) {
	timeWait(t, 22710)
	if fd, err := holdPort(22710, false); err == nil {
		unix.Close(fd)
		t.Fatal("no old connection is there: the test shows nothing")
	}
	h := held(t, ranges(t, "22600-22609"), []Want{{Name: "default", Number: 22710}}, nil)
	if got := h.Ports()["default"]; got != 22710 {
		t.Errorf("got %d, want 22710", got)
	}
}

func TestAllowedPorts(t *testing.T) {
	allowed := ranges(t, "22801, 22803-22804")
	l, err := listen(":22801")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	h := held(t, ranges(t, "22000-22099"), []Want{{Name: "a", Number: 22802, Allowed: allowed}, {Name: "b", Allowed: allowed}}, map[string]int{"a": 22001})
	for name, n := range h.Ports() {
		if n != 22803 && n != 22804 {
			t.Errorf("%s got %d, want one of %s", name, n, allowed)
		}
	}
	_, err = Claim(Ranges{Default}, []Want{{Name: "free"}, {Name: "c", Allowed: allowed}}, nil)
	const want = "port c: no port is free in 22801,22803-22804 (1 × address already in use; 2 × held by another agent)"
	if err == nil || err.Error() != want || !errors.Is(err, ErrNone) {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

func TestAFailedClaimHoldsNothing(t *testing.T) {
	r := ranges(t, "22900-22901")
	if _, err := Claim(r, []Want{{Name: "a"}, {Name: "b"}, {Name: "c"}}, nil); !errors.Is(err, ErrNone) {
		t.Errorf("three of two: %v", err)
	}
	if _, err := Claim(r, []Want{{Name: "a"}, {Name: "a"}}, nil); err == nil {
		t.Error("one name twice was accepted")
	}
	held(t, r, []Want{{Name: "a"}, {Name: "b"}}, nil)
}

func TestNoHolderReachesAChild(t *testing.T) {
	h := held(t, ranges(t, "23000-23099"), []Want{{Name: "a"}}, nil)
	n := h.Ports()["a"]
	child := exec.Command("sleep", "1000")
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = child.Process.Kill(), child.Wait() }()
	if err := h.Release(); err != nil {
		t.Fatal(err)
	}
	l, err := listen(":" + strconv.Itoa(n))
	if err != nil {
		t.Fatalf("the child holds the port: %v", err)
	}
	l.Close()
}

// Who is not chosen keeps the port held while the others are handed over and taken back.
func TestReleaseOnlyWhatIsChosen(t *testing.T) {
	h := held(t, ranges(t, "20000-29999"), []Want{{Name: "main"}, {Name: "side.board"}}, nil)
	side := func(name string) bool { return name == "side.board" }
	free := func() string {
		var names []string
		for name, n := range h.Ports() {
			if l, err := listen(net.JoinHostPort("127.0.0.1", strconv.Itoa(n))); err == nil {
				l.Close()
				names = append(names, name)
			}
		}
		slices.Sort(names)
		return strings.Join(names, " ")
	}
	for _, step := range []struct {
		do   func() error
		want string
	}{
		{func() error { return nil }, ""},
		{func() error { return h.ReleaseOnly(func(name string) bool { return !side(name) }) }, "main"},
		{func() error { return h.ReleaseOnly(side) }, "main side.board"},
		{func() error { return h.RebindOnly(side) }, "main"},
		{func() error { return h.Rebind() }, ""},
		{func() error { return h.Release() }, "main side.board"},
	} {
		if err := step.do(); err != nil {
			t.Fatal(err)
		}
		if got := free(); got != step.want {
			t.Errorf("free: %q, want %q", got, step.want)
		}
	}
}

// TestListen: the agent answers at a port that it holds, through all that is released and held again.
func TestListen(t *testing.T) {
	h := held(t, ranges(t, "28710-28719"), []Want{{Name: "ssh"}, {Name: "other"}}, nil)
	l, err := h.Listen("ssh", "127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if got := l.Addr().(*net.TCPAddr).Port; got != h.Ports()["ssh"] {
		t.Errorf("got %d, want %d", got, h.Ports()["ssh"])
	}
	for range 2 {
		if err := errors.Join(h.ReleaseOnly(func(name string) bool { return name == "other" }), h.Rebind()); err != nil {
			t.Fatal(err)
		}
	}
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	if _, err := h.Listen("none", "127.0.0.1"); !errors.Is(err, ErrNone) {
		t.Errorf("got %v", err)
	}
}
