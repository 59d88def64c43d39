// Package commandline is the muster of a black-box test: one machine with a state folder of its own, commands whose
// lines can be waited for, and what they print as JSON. Every wait is for a line or an end, and Watchdog ends only a
// test that has gone wrong.
package commandline

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/muster-agent/muster/tests/folder"
)

// Watchdog bounds one wait: the import of a framework takes seconds of every process, on busy cores two minutes.
const Watchdog = 4 * time.Minute

// Host is one machine as muster sees it. Its methods end the test on errors.
type Host struct {
	t      *testing.T
	muster string
	// Env is what commands inherit: NAME=VALUE.
	Env []string
}

// NewHost is a machine with a state folder of its own, and with nothing of the muster, Consul and proxies of who runs
// the test. muster is the program's path.
func NewHost(t *testing.T, muster string) Host {
	t.Helper()
	h := Host{t: t, muster: muster}
	for _, e := range os.Environ() {
		name, _, _ := strings.Cut(e, "=")
		ours := strings.HasPrefix(name, "MUSTER_") || strings.HasPrefix(name, "CONSUL_")
		if !ours && !strings.HasSuffix(strings.ToLower(name), "_proxy") {
			h.Env = append(h.Env, e)
		}
	}
	h.Env = append(h.Env, "MUSTER_AGENT_STATE_DIR="+filepath.Join(t.TempDir(), "state"),
		"MUSTER_AGENT_POLICY="+operator(t))
	return h
}

// operator is the policy of a host whose containers see this test's folders: data, checkpoints and what it watches.
func operator(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "policy.json")
	all := filepath.Dir(filepath.Dir(path)) // of this test
	text, err := json.Marshal(map[string]any{"version": 1, "mounts": []any{map[string]string{"path": all}}})
	if err == nil {
		err = errors.Join(os.WriteFile(path, text, 0o600), os.Chmod(all, 0o755)) //nolint:gosec // processes of any user pass through it
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// WorkFolder is a work folder that does not lie in what the operator mounts: a process could turn the way to it.
func WorkFolder(t *testing.T) string {
	t.Helper()
	return filepath.Join(folder.Temp(t, "muster-work-"), "work") // those of TempDir lie together, in what is mounted
}

// Command is one muster that runs. Its methods end the test on errors.
type Command struct {
	*transcript // its stderr
	t           *testing.T
	name        string
	cmd         *exec.Cmd
	Stdout      bytes.Buffer  // whole when it has ended
	gone        chan struct{} // closed when it has ended
}

// Start launches muster. When the test ends and it still runs, it is stopped.
func (h Host) Start(args ...string) *Command {
	h.t.Helper()
	c := &Command{
		transcript: newTranscript(), t: h.t, name: "muster " + strings.Join(args, " "),
		cmd: exec.Command(h.muster, args...), gone: make(chan struct{}),
	}
	c.cmd.Env, c.cmd.Stdout, c.cmd.Stderr = h.Env, &c.Stdout, c.transcript
	if err := c.cmd.Start(); err != nil {
		h.t.Fatal(err)
	}
	go func() {
		_ = c.cmd.Wait() // ProcessState has it whole
		c.close()
		close(c.gone)
	}()
	h.t.Cleanup(c.stop)
	return c
}

// Wait waits for its end and gives its exit code.
func (c *Command) Wait() int {
	c.t.Helper()
	select {
	case <-c.gone:
	case <-time.After(Watchdog):
		c.t.Fatalf("%s: not over after %s; so far:\n%s", c.name, Watchdog, c.End())
	}
	return c.cmd.ProcessState.ExitCode()
}

// Succeed waits for its end, which has to be exit code 0, and gives its stdout.
func (c *Command) Succeed() []byte {
	c.t.Helper()
	if code := c.Wait(); code != 0 {
		c.t.Fatalf("%s: got exit code %d, want 0\n%s\n%s", c.name, code, c.End(), c.Stdout.String())
	}
	return c.Stdout.Bytes()
}

// stop ends what still runs: in grace zero, so that the agents take their processes with them.
func (c *Command) stop() {
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGTERM, syscall.SIGKILL} {
		select {
		case <-c.gone:
			return
		default:
		}
		if err := c.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
			c.t.Errorf("%s: %s: %v", c.name, sig, err)
		}
		if sig == syscall.SIGTERM && c.waited(5*time.Second) {
			return
		}
	}
	<-c.gone
}

func (c *Command) waited(atMost time.Duration) bool {
	select {
	case <-c.gone:
		return true
	case <-time.After(atMost):
		return false
	}
}

// Do runs muster to its end, which has to be exit code 0, and gives its stdout.
func (h Host) Do(args ...string) []byte {
	h.t.Helper()
	return h.Start(args...).Succeed()
}

// Instance is what muster prints of an instance.
type Instance struct {
	Instance       string            `json:"instance"`
	Role           string            `json:"role"`
	Phase          string            `json:"phase"`
	Ports          map[string]int    `json:"ports"`
	Exports        map[string]string `json:"exports"`
	Generation     int               `json:"generation"`
	Restarts       int               `json:"restarts"`
	CheckpointStep *int64            `json:"checkpoint_step"`
	Exit           *int              `json:"exit"`
}

// Report is what `run --json` and `status --json` print.
type Report struct {
	Outcome     string     `json:"outcome"`
	Generations int        `json:"generations"`
	Restarts    int        `json:"restarts"`
	Instances   []Instance `json:"instances"`
	LogDir      string     `json:"log_dir"`
}

// Of is the row of an instance.
func (r Report) Of(t *testing.T, name string) Instance {
	t.Helper()
	for _, in := range r.Instances {
		if in.Instance == name {
			return in
		}
	}
	t.Fatalf("no %s among the instances: %+v", name, r.Instances)
	return Instance{}
}

// Printed is the stdout of an instance, as its log has it.
func (r Report) Printed(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(r.LogDir, name, "stdout.log"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Parse reads JSON of a command's stdout.
func Parse[T any](t *testing.T, text []byte) (v T) {
	t.Helper()
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatalf("%v in:\n%s", err, text)
	}
	return v
}

// Run runs a whole app to its end, which has to be a success.
func (h Host) Run(args ...string) Report {
	h.t.Helper()
	work := WorkFolder(h.t)
	r := Parse[Report](h.t, h.Do(append([]string{"run", "--json", "--work-dir", work}, args...)...))
	if r.Outcome != "succeeded" {
		h.t.Fatalf("got outcome %q, want succeeded", r.Outcome)
	}
	return r
}

// Status asks the registry, of that URL, how a run stands.
func (h Host) Status(registry, app string) Report {
	h.t.Helper()
	return Parse[Report](h.t, h.Do("status", app, "--registry", registry, "--json"))
}
