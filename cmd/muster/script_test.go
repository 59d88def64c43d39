package main

import (
	"errors"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/muster-agent/muster/shim/sandbox"
)

func TestMain(m *testing.M) {
	sandbox.Init() // a container is entered by this program too
	// The scripts wait for agents more than they compute. A -parallel of the command line still counts.
	_ = flag.Set("test.parallel", strconv.Itoa(2*runtime.GOMAXPROCS(0)))
	testscript.Main(m, map[string]func(){"muster": main, "expects": expects})
}

// TestScripts runs the promises of the manual, one script each. Beside testscript's own commands
// they have `exits`, `agent`, `registry`, `member`, `signals`, `waitfile`, `fields`, `keys` and `web`, and the program `expects`.
func TestScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/script/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			t.Parallel()
			runScript(alone{t}, file, scriptLimit)
		})
	}
}

// runScript runs one, which ends with its log when it takes too long: testscript itself knows one time for all scripts of a
// run, and they wait for each other.
func runScript(t testscript.T, file string, limit time.Duration) {
	end := time.Now().Add(limit)
	dog, work := func() {}, ""
	defer func() { dog() }()
	defer func() { clearLeft(t, work) }()
	testscript.RunT(t, testscript.Params{
		Files: []string{file}, RequireExplicitExec: true, RequireUniqueNames: true, UpdateScripts: *update, Deadline: end,
		Setup: func(e *testscript.Env) error {
			work = e.WorkDir
			dog = clearAt(end, work)
			return setupScript(e)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits, "agent": startAgent, "registry": startRegistry, "member": holdIndex, "signals": knownSignals,
			"waitfile": waitFile, "fields": fields, "keys": keepKeys, "web": startWeb,
		},
	})
}

// setupScript gives a script a state folder, a home and no registry of its own.
func setupScript(e *testscript.Env) error {
	e.Values[puppets{}] = &puppetShow{agents: map[string]*puppet{}}
	e.Setenv("MUSTER_AGENT_STATE_DIR", filepath.Join(e.WorkDir, "state"))
	e.Setenv("STATE", filepath.Join(e.WorkDir, "state"))
	e.Setenv("HOME", filepath.Join(e.WorkDir, "home"))
	e.Setenv("TZ", "UTC")
	// With the race detector each of a thousand commands would wait a second at its end, for reports of other threads.
	e.Setenv("GORACE", "atexit_sleep_ms=20")
	err := os.MkdirAll(filepath.Join(e.WorkDir, "home"), 0o755)
	// The processes of an agent that is root are nobody on this host: they pass through the folder of all scripts.
	return errors.Join(err, os.Chmod(filepath.Dir(e.WorkDir), 0o711)) //nolint:gosec // see above
}

// exits runs a command and asserts its exit code: `exits CODE COMMAND ARG…`.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND ARG...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	var exit *exec.ExitError
	if err := ts.Exec(args[1], args[2:]...); errors.As(err, &exit) {
		got = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("%v: exit code %d, want %d", args[1:], got, want)
	}
}
