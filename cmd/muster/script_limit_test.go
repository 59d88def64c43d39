package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// scriptLimit is the longest life of one script; one has taken 90 s on cores that eight people shared. What it runs is told to quit, with
// the stacks of its goroutines, a tenth of the time before.
const scriptLimit = 5 * time.Minute

// alone is a test that is one script: testscript would make a test below it.
type alone struct{ *testing.T }

func (a alone) Run(_ string, f func(testscript.T)) { f(a) }
func (a alone) Parallel()                          {} // it is
func (a alone) Verbose() bool                      { return testing.Verbose() }

// clearAt kills at a time what a script has left running, unless it is stopped before. testscript ends the commands alone, and
// waits until their outputs are closed, so for the last of their children.
func clearAt(end time.Time, work string) (stop func()) {
	dog := time.AfterFunc(time.Until(end), func() {
		for _, pid := range ofScript(work) {
			_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended
		}
	})
	return func() { dog.Stop() }
}

// clearLeft ends what a script has left running. A script that has passed ends its apps itself.
func clearLeft(t testscript.T, work string) {
	a, passed := t.(alone)
	passed = passed && !a.Failed() && !a.Skipped()
	for end := time.Now().Add(30 * time.Second); passed && len(ofScript(work)) > 0 && time.Now().Before(end); {
		time.Sleep(50 * time.Millisecond) // they are ending
	}
	for _, pid := range ofScript(work) {
		name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)) // it may have ended
		if passed {
			a.Errorf("the script has left %d running: %s", pid, bytes.ReplaceAll(name, []byte{0}, []byte(" ")))
		}
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}

// ofScript are the processes that a script has started: all have its folder in their environment, which is nobody else's.
func ofScript(work string) (pids []int) {
	found, _ := filepath.Glob("/proc/[0-9]*/environ") // only a bad pattern is an error
	for _, path := range found {
		environ, err := os.ReadFile(path)
		if err != nil || !bytes.Contains(environ, []byte("WORK="+work+"\x00")) {
			continue // it has ended
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path))); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// failing is a test that is expected to fail.
type failing struct {
	alone
	log    strings.Builder
	failed bool
}

func (f *failing) Run(_ string, script func(testscript.T)) { script(f) }
func (f *failing) Log(args ...any)                         { fmt.Fprintln(&f.log, args...) }
func (f *failing) Fatal(args ...any)                       { f.Log(args...); f.FailNow() }
func (f *failing) FailNow()                                { f.failed = true; runtime.Goexit() }

// TestScriptThatHangs runs one whose command leaves a child that holds its output and is deaf to SIGQUIT, as shells' children
// in the background are.
func TestScriptThatHangs(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "hangs.txtar")
	if err := os.WriteFile(path, []byte("exec sh -c 'sleep 1000 & sleep 1000'\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	f := &failing{alone: alone{t}}
	over := make(chan struct{})
	go func() {
		defer close(over)
		runScript(f, path, 2*time.Second)
	}()
	select {
	case <-over:
	case <-time.After(scriptWatchdog):
		t.Fatalf("not over after %s", scriptWatchdog)
	}
	if !f.failed || !strings.Contains(f.log.String(), "sleep 1000") {
		t.Errorf("got failed %t, want the log of a script that failed\n%s", f.failed, f.log.String())
	}
}
