package gang

import (
	"bufio"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/muster-agent/muster/tests/folder"
)

// stage is where a test meets its puppets.
type stage struct {
	t       testing.TB
	address string

	mu      sync.Mutex
	entries map[string]chan *actor // by name, in the order of their starts
	all     []*actor
}

// openStage listens until the test ends; puppets that are left then end by themselves.
func openStage(t testing.TB) *stage {
	t.Helper()
	s := &stage{t: t, address: filepath.Join(folder.Temp(t, "stage-"), "s"), entries: map[string]chan *actor{}}
	l, err := net.Listen("unix", s.address)
	if err == nil {
		err = os.Chmod(s.address, 0o777) //nolint:gosec // puppets are of any user
	}
	if err != nil {
		t.Fatal(err)
	}
	var work sync.WaitGroup
	work.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			work.Go(func() { s.meet(conn) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		for _, a := range s.actors() {
			a.conn.Close()
		}
		work.Wait()
	})
	return s
}

// meet takes in one puppet and hears it to its end.
func (s *stage) meet(conn net.Conn) {
	defer conn.Close()
	lines := bufio.NewScanner(conn)
	lines.Buffer(nil, 1<<20)
	a := &actor{t: s.t, conn: conn, words: make(chan word, 64), left: make(chan struct{})}
	defer close(a.left)
	if !lines.Scan() || json.Unmarshal(lines.Bytes(), &a.hello) != nil {
		return
	}
	s.mu.Lock()
	s.all = append(s.all, a)
	s.mu.Unlock()
	s.entry(a.Name) <- a
	for lines.Scan() {
		var w word
		if json.Unmarshal(lines.Bytes(), &w) == nil {
			select {
			case a.words <- w:
			default: // nobody listens to this one
			}
		}
	}
}

func (s *stage) entry(name string) chan *actor {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.entries[name] == nil {
		s.entries[name] = make(chan *actor, 64)
	}
	return s.entries[name]
}

func (s *stage) actors() []*actor {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]*actor(nil), s.all...)
}

// next waits for the next start of a process of that name.
func (s *stage) next(name string) *actor {
	s.t.Helper()
	dog := time.NewTimer(watchdog)
	defer dog.Stop()
	select {
	case a := <-s.entry(name):
		return a
	case <-dog.C:
		s.t.Fatalf("no process of %s was started within %s", name, watchdog)
	}
	return nil
}

// starts is how often a process of that name was started so far.
func (s *stage) starts(name string) int {
	n := 0
	for _, a := range s.actors() {
		if a.Name == name {
			n++
		}
	}
	return n
}

// actor is one puppet as the test sees it.
type actor struct {
	hello
	t     testing.TB
	conn  net.Conn
	words chan word
	left  chan struct{} // closed when its process is gone
}

// do gives a cue and waits until it is done.
func (a *actor) do(c cue) {
	a.t.Helper()
	a.send(c)
	dog := time.NewTimer(watchdog)
	defer dog.Stop()
	for {
		select {
		case w := <-a.words:
			if w.Error != "" {
				a.t.Fatalf("%s: %s: %s", a.Name, c.Do, w.Error)
			}
			if w.Done {
				return
			}
		case <-a.left:
			a.t.Fatalf("%s: %s: its process is gone", a.Name, c.Do)
		case <-dog.C:
			a.t.Fatalf("%s: %s: not done within %s", a.Name, c.Do, watchdog)
		}
	}
}

func (a *actor) send(c cue) {
	a.t.Helper()
	if err := json.NewEncoder(a.conn).Encode(c); err != nil {
		a.t.Fatalf("%s: %s: %v", a.Name, c.Do, err)
	}
}

// exit makes the process end with that code and waits until it is gone.
func (a *actor) exit(code int) {
	a.t.Helper()
	a.send(cue{Do: "exit", N: code})
	a.gone()
}

// kill ends the process by SIGKILL, as the kernel or a person would, and waits until it is gone.
func (a *actor) kill() {
	a.t.Helper()
	if err := syscall.Kill(a.Pid, syscall.SIGKILL); err != nil {
		a.t.Fatalf("kill %s: %v", a.Name, err)
	}
	a.gone()
}

// gone waits until the process is gone.
func (a *actor) gone() {
	a.t.Helper()
	dog := time.NewTimer(watchdog)
	defer dog.Stop()
	select {
	case <-a.left:
	case <-dog.C:
		a.t.Fatalf("%s (pid %d) is still there after %s", a.Name, a.Pid, watchdog)
	}
}

// goneBy repeats a signal until the process is gone: one that follows the first at once would be taken for its echo.
func (a *actor) goneBy(signal func()) {
	a.t.Helper()
	dog, tick := time.NewTimer(watchdog), time.NewTicker(100*time.Millisecond)
	defer dog.Stop()
	defer tick.Stop()
	for {
		select {
		case <-a.left:
			return
		case <-tick.C:
			signal()
		case <-dog.C:
			a.t.Fatalf("%s (pid %d) is still there after %s", a.Name, a.Pid, watchdog)
		}
	}
}

// hearsTerm waits until a process with a trap has heard TERM, by which agents stop what they run.
func (a *actor) hearsTerm() {
	a.t.Helper()
	dog := time.NewTimer(watchdog)
	defer dog.Stop()
	for {
		select {
		case w := <-a.words:
			if w.Signal == int(syscall.SIGTERM) {
				return
			}
		case <-a.left:
			a.t.Fatalf("%s is gone, want it to hear TERM", a.Name)
		case <-dog.C:
			a.t.Fatalf("%s has not heard TERM within %s", a.Name, watchdog)
		}
	}
}

// stays fails the test unless the process is still there.
func (a *actor) stays() {
	a.t.Helper()
	select {
	case <-a.left:
		a.t.Fatalf("%s (pid %d) is gone, want it to run on", a.Name, a.Pid)
	default:
	}
	if !lives(a.Pid) {
		a.t.Fatalf("%s (pid %d) is gone, want it to run on", a.Name, a.Pid)
	}
}

// env is a variable of the process.
func (a *actor) env(name string) string {
	for _, v := range a.Env {
		if value, ok := strings.CutPrefix(v, name+"="); ok {
			return value
		}
	}
	return ""
}

func (a *actor) number(name string) int {
	a.t.Helper()
	n, err := strconv.Atoi(a.env(name))
	if err != nil {
		a.t.Fatalf("%s: %s: %v", a.Name, name, err)
	}
	return n
}

func (a *actor) attempt() int    { return a.number("MUSTER_ATTEMPT") }
func (a *actor) generation() int { return a.number("MUSTER_GENERATION") }
func (a *actor) port() int       { return a.number("MUSTER_PORT") }
