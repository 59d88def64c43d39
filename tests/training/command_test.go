package training_test

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
)

// host is one machine as muster sees it: a state folder and what is inherited.
type host struct {
	t     *testing.T
	state string
	env   []string
}

func newHost(t *testing.T) host {
	t.Helper()
	h := host{t: t, state: filepath.Join(t.TempDir(), "state")}
	for _, e := range os.Environ() {
		name, _, _ := strings.Cut(e, "=")
		ours := strings.HasPrefix(name, "MUSTER_") || strings.HasPrefix(name, "CONSUL_")
		if !ours && !strings.HasSuffix(strings.ToLower(name), "_proxy") {
			h.env = append(h.env, e)
		}
	}
	h.env = append(h.env, "MUSTER_AGENT_STATE_DIR="+h.state, "MUSTER_AGENT_POLICY="+operator(t))
	return h
}

// operator is the policy of a host whose containers see this test's folders: data, checkpoints and what it watches.
func operator(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "policy.json")
	text, err := json.Marshal(map[string]any{"version": 1, "mounts": []any{map[string]string{"path": filepath.Dir(filepath.Dir(path))}}})
	if err == nil {
		err = os.WriteFile(path, text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// workFolder is a work folder that does not lie in what the operator mounts: a process could turn the way to it.
func workFolder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "muster-training-") //nolint:usetesting // those of a test lie together, in what is mounted
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return filepath.Join(dir, "work")
}

// command is one muster that runs.
type command struct {
	*transcript // its stderr
	t           *testing.T
	name        string
	cmd         *exec.Cmd
	stdout      bytes.Buffer
	gone        chan struct{} // closed when it has ended
}

// start launches muster. When the test ends and it still runs, it is stopped.
func (h host) start(args ...string) *command {
	h.t.Helper()
	c := &command{
		transcript: newTranscript(), t: h.t, name: "muster " + strings.Join(args, " "),
		cmd: exec.Command(muster, args...), gone: make(chan struct{}),
	}
	c.cmd.Env, c.cmd.Stdout, c.cmd.Stderr = h.env, &c.stdout, c.transcript
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

// wait waits for its end and gives its exit code.
func (c *command) wait() int {
	c.t.Helper()
	select {
	case <-c.gone:
	case <-time.After(watchdog):
		c.t.Fatalf("%s: not over after %s; so far:\n%s", c.name, watchdog, c.end())
	}
	return c.cmd.ProcessState.ExitCode()
}

// succeed waits for its end, which has to be exit code 0, and gives its stdout.
func (c *command) succeed() []byte {
	c.t.Helper()
	if code := c.wait(); code != 0 {
		c.t.Fatalf("%s: got exit code %d, want 0\n%s\n%s", c.name, code, c.end(), c.stdout.String())
	}
	return c.stdout.Bytes()
}

// stop ends what still runs: in grace zero, so that the agents take their processes with them.
func (c *command) stop() {
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

func (c *command) waited(atMost time.Duration) bool {
	select {
	case <-c.gone:
		return true
	case <-time.After(atMost):
		return false
	}
}

// do runs muster to its end, which has to be exit code 0, and gives its stdout.
func (h host) do(args ...string) []byte {
	h.t.Helper()
	return h.start(args...).succeed()
}

// report is what `run --json` and `status --json` print.
type report struct {
	Outcome     string `json:"outcome"`
	Generations int    `json:"generations"`
	Instances   []struct {
		Instance string            `json:"instance"`
		Exports  map[string]string `json:"exports"`
	} `json:"instances"`
}

// parse reads JSON of a command's stdout.
func parse[T any](t *testing.T, text []byte) (v T) {
	t.Helper()
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatalf("%v in:\n%s", err, text)
	}
	return v
}
