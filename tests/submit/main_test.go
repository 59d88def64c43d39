// Package submit_test has `muster submit` start gangs at real launchers, and looks at what it says, what it ends with and what
// it leaves.
package submit_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/muster-agent/muster/tests/binary"
	"github.com/muster-agent/muster/tests/leash"
)

// muster is the binary under test. Set before the first test, never after.
var muster string

func TestMain(m *testing.M) {
	os.Exit(binary.Main(func(built string) int {
		muster = built
		return m.Run()
	}))
}

// watchdog ends a test that has gone wrong, and nothing else.
const watchdog = 2 * time.Minute

// client is a muster submit that runs.
type client struct {
	t        *testing.T
	cmd      *leash.Program
	out, err said
}

// said is what a program has written so far.
type said struct {
	mu   sync.Mutex
	text bytes.Buffer
	more chan struct{}
}

func (s *said) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, err := s.text.Write(b)
	select {
	case s.more <- struct{}{}:
	default:
	}
	return n, err
}

func (s *said) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// submit starts muster.
func submit(t *testing.T, env []string, args ...string) *client {
	t.Helper()
	return submitIn(t, "", env, args...)
}

// submitIn starts muster in a folder.
func submitIn(t *testing.T, dir string, env []string, args ...string) *client {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), muster, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	return begin(t, cmd)
}

func begin(t *testing.T, cmd *exec.Cmd) *client {
	t.Helper()
	c := &client{t: t}
	c.out.more, c.err.more = make(chan struct{}, 1), make(chan struct{}, 1)
	cmd.Stdout, cmd.Stderr = &c.out, &c.err
	var err error
	if c.cmd, err = leash.Start(cmd, 3*watchdog); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if cmd.ProcessState == nil {
			_ = cmd.Process.Kill()
			_ = c.cmd.Wait()
		}
	})
	return c
}

// says waits until the client has said a text on stderr.
func (c *client) says(text string) {
	c.t.Helper()
	dog := time.After(watchdog)
	for !strings.Contains(c.err.String(), text) {
		select {
		case <-c.err.more:
		case <-dog:
			c.t.Fatalf("not said: %q\n%s%s", text, c.out.String(), c.err.String())
		}
	}
}

// ends waits for the end, which comes in time, and gives the exit code.
func (c *client) ends() int {
	c.t.Helper()
	_ = c.cmd.Wait() // the code says it
	return c.cmd.ProcessState.ExitCode()
}

// left are the files in a store, each in the folder of its run.
func left(t *testing.T, store string) []string {
	t.Helper()
	var all []string
	err := fs.WalkDir(os.DirFS(store), ".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			all = append(all, path)
		}
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return all
}
