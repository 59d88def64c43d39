// Package data_test holds the product to what it promises of inputs, outputs and the folders of a PAI job, by the built
// binary and its command line. What is asserted is what users see: files, exit codes and words.
package data_test

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/muster-agent/muster/shim/status"
	"github.com/muster-agent/muster/tests/binary"
	"github.com/muster-agent/muster/tests/folder"
	"github.com/muster-agent/muster/tests/servers/hadoop"
)

// watchdog bounds every wait. It ends tests that have gone wrong and is part of no promise.
const watchdog = 60 * time.Second

// muster is the binary under test. Set before the first test, never after.
var muster string

func TestMain(m *testing.M) {
	os.Exit(binary.Main(func(built string) int {
		muster = built
		return hadoop.Main(m)
	}))
}

// settings are a definition's, by key; a key with a component before it, as in ps:KEY, is that component's.
type settings = map[string]string

// job is an app with everything that belongs to it. Methods end the test on errors.
type job struct {
	t                                 testing.TB
	app, top, dir, work, state, store string
	env                               []string
}

// newJob lays down an app with so many workers.
func newJob(t testing.TB, workers int, set settings) *job {
	t.Helper()
	top := folder.Temp(t, "md-")
	j := &job{t: t, app: "d" + strings.ToLower(rand.Text()[:8]), top: top}
	j.dir, j.work, j.state, j.store = filepath.Join(top, "app"), filepath.Join(top, "w"), filepath.Join(top, "s"), filepath.Join(top, "fs")
	j.must(os.Mkdir(j.dir, 0o755))
	folder.OfAll(t, j.store)
	t.Cleanup(func() {
		if t.Failed() {
			logs, _ := filepath.Glob(filepath.Join(j.work, "log", "*", "*.log"))
			for _, path := range logs {
				t.Logf("%s:\n%s", path, read(path))
			}
		}
	})
	j.operator()
	j.define(workers, set)
	return j
}

// operator is the policy of the job's host: definitions may name nobody as a user.
func (j *job) operator() {
	j.t.Helper()
	path := filepath.Join(j.top, "policy.json")
	j.must(os.WriteFile(path, []byte(`{"version": 1, "users": {"names": ["nobody"]}}`), 0o644)) //nolint:gosec // no secret
	j.env = append(j.env, "MUSTER_AGENT_POLICY="+path)
}

// define writes the package: workers, and a parameter server where a setting is one's.
func (j *job) define(workers int, set settings) {
	j.t.Helper()
	counts, sections := map[string]int{"worker": workers}, map[string]map[string]string{}
	for key, value := range set {
		component, name, ok := strings.Cut(key, ":")
		if !ok {
			component, name = "worker", key
		}
		if component == "ps" {
			counts["ps"] = 1
		}
		if sections[component] == nil {
			sections[component] = map[string]string{}
		}
		sections[component][name] = value
	}
	global := sections["global"]
	delete(sections, "global")
	components, resources := []map[string]any{}, map[string]map[string]string{}
	for _, name := range []string{"ps", "worker"} {
		if n := counts[name]; n > 0 {
			components = append(components, map[string]any{"name": name})
			resources[name] = map[string]string{
				"yarn.role.priority": strconv.Itoa(len(components)), "yarn.component.instances": strconv.Itoa(n), "yarn.memory": "64", "yarn.vcores": "1",
			}
		}
	}
	for name, value := range map[string]any{
		"metainfo.json":  map[string]any{"schemaVersion": "2.1", "application": map[string]any{"name": "data", "version": "1", "components": components}},
		"appConfig.json": map[string]any{"schema": "http://example.org/specification/v2.0.0", "global": global, "components": sections},
		"resources.json": map[string]any{"schema": "http://example.org/specification/v2.0.0", "global": map[string]string{}, "components": resources},
	} {
		text, err := json.Marshal(value)
		j.must(err)
		j.must(os.WriteFile(filepath.Join(j.dir, name), text, 0o600))
	}
}

func (j *job) must(err error) {
	j.t.Helper()
	if err != nil {
		j.t.Fatal(err)
	}
}

// lay writes files below the job's own filesystem, where every user may read them.
func (j *job) lay(files map[string]string) {
	j.t.Helper()
	for name, text := range files {
		path := filepath.Join(j.store, name)
		j.must(os.MkdirAll(filepath.Dir(path), 0o755))
		j.must(os.WriteFile(path, []byte(text), 0o644)) //nolint:gosec // as above
	}
}

// command is one muster with an environment of its own: nothing of who runs the test, so no launcher either.
func (j *job) command(args ...string) *exec.Cmd {
	cmd := exec.CommandContext(j.t.Context(), muster, args...)
	cmd.Env = append([]string{
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=" + j.top, "TMPDIR=/tmp", "LANG=C",
		"MUSTER_AGENT_STATE_DIR=" + j.state, "XDG_CACHE_HOME=" + filepath.Join(j.top, "cache"),
	}, j.env...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = watchdog
	return cmd
}

// runArgs run the app in its own filesystem.
func (j *job) runArgs(args ...string) []string {
	return append([]string{"run", j.dir, "--app-id", j.app, "--work-dir", j.work, "--json", "--default-fs", "file:" + j.store}, args...)
}

// ending is how a run has ended: its exit code, what `muster run --json` printed, and what it said.
type ending struct {
	status.ResultFile
	code int
	said string
}

func (j *job) run(args ...string) ending {
	j.t.Helper()
	return j.end(j.command(j.runArgs(args...)...))
}

func (j *job) end(cmd *exec.Cmd) ending {
	j.t.Helper()
	return j.begin(cmd)()
}

// begin starts the command; what it answers waits for its end.
func (j *job) begin(cmd *exec.Cmd) (end func() ending) {
	j.t.Helper()
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	j.must(cmd.Start())
	return func() ending { return j.ended(cmd, &out, &said) }
}

func (j *job) ended(cmd *exec.Cmd, out, said *bytes.Buffer) ending {
	j.t.Helper()
	err := cmd.Wait()
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
		j.t.Fatal(err)
	}
	e := ending{code: cmd.ProcessState.ExitCode(), said: said.String()}
	if out.Len() > 0 {
		j.must(json.Unmarshal(out.Bytes(), &e.ResultFile))
	}
	return e
}

// succeeds asserts a success.
func (e ending) succeeds(t testing.TB) {
	t.Helper()
	if e.Outcome != "succeeded" || e.code != 0 {
		t.Fatalf("%s, exit code %d (%s), want succeeded, 0\n%s", e.Outcome, e.code, e.Cause, e.said)
	}
}

// fails asserts the class, the exit code and words of the cause.
func (e ending) fails(t testing.TB, class string, code int, words ...string) {
	t.Helper()
	got := "none"
	if e.Class != nil {
		got = *e.Class
	}
	if got != class || e.code != code || e.Outcome != "failed" {
		t.Errorf("%s, class %s, exit code %d (%s), want failed, %s, %d\n%s", e.Outcome, got, e.code, e.Cause, class, code, e.said)
	}
	for _, w := range words {
		if !strings.Contains(e.Cause, w) {
			t.Errorf("cause %q: want %q in it", e.Cause, w)
		}
	}
}

func read(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// files are those below a folder, by path, with their content.
func (j *job) files(dir string) map[string]string {
	j.t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil && d.Type().IsRegular() {
			name, _ := filepath.Rel(dir, path)
			all[name] = read(path)
		}
		return err
	})
	j.must(err)
	return all
}

// same compares files. That _SUCCESS is there is compared where it is wanted.
func (j *job) same(got, want map[string]string) {
	j.t.Helper()
	names := map[string]bool{}
	for _, m := range []map[string]string{got, want} {
		for name := range m {
			names[name] = true
		}
	}
	for name := range names {
		g, has := got[name]
		w, wanted := want[name]
		if name == "_SUCCESS" && !wanted {
			continue
		}
		if has != wanted || g != w {
			j.t.Errorf("%s: got %q (there: %t), want %q (there: %t)", name, g, has, w, wanted)
		}
	}
}

// log is the agent's own log of an instance.
func (j *job) log(instance string) string {
	return read(filepath.Join(j.work, "log", instance, "agent.log"))
}

// await looks again and again until see says yes.
func await(t testing.TB, what string, see func() bool) {
	t.Helper()
	poll := time.NewTicker(time.Millisecond)
	defer poll.Stop()
	dog := time.NewTimer(watchdog)
	defer dog.Stop()
	for !see() {
		select {
		case <-poll.C:
		case <-dog.C:
			t.Fatalf("not seen within %s: %s", watchdog, what)
		}
	}
}

// read reads a file of JSON.
func (j *job) read(path string, into any) {
	j.t.Helper()
	text, err := os.ReadFile(path)
	j.must(err)
	j.must(json.Unmarshal(text, into))
}
