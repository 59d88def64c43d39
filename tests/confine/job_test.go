package confine_test

import (
	"bufio"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/muster-agent/muster/tests/child"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/status"
)

// settings are a definition's, by key: limits lie in resources, the rest in appConfig.
type settings = map[string]string

// job is an app of one component, worker, with everything that belongs to it. Methods end the test on errors.
type job struct {
	t      testing.TB
	app    string // app id
	dir    string // of the definition, or catalog:NAME
	work   string
	state  string
	home   string
	muster string
	as     *syscall.Credential // who starts muster; nil: this user
	env    []string            // for muster, beside the rest
	wrap   []string            // what muster is started by
}

// program is the command of a program in testdata.
func program(name string, args ...string) string {
	return strings.Join(append([]string{"exec python3 app/definition/package/files/" + name + ".py"}, args...), " ")
}

// newJob lays an app of this command out.
func newJob(t testing.TB, command string, more settings) *job {
	t.Helper()
	j := blankJob(t, nil)
	j.define(command, more)
	return j
}

// jobOf is newJob for a user of this host: what it makes is the user's.
func jobOf(t testing.TB, as *syscall.Credential, command string, more settings) *job {
	t.Helper()
	j := blankJob(t, as)
	j.define(command, more)
	return j
}

func blankJob(t testing.TB, as *syscall.Credential) *job {
	t.Helper()
	top, err := os.MkdirTemp("", "mc-") //nolint:usetesting // short: a socket's path has 107 bytes
	if err != nil {
		t.Fatal(err)
	}
	j := &job{t: t, app: "c" + strings.ToLower(rand.Text()[:8]), muster: muster, as: as}
	j.dir, j.work, j.state, j.home = filepath.Join(top, "app"), filepath.Join(top, "w"), filepath.Join(top, "s"), filepath.Join(top, "h")
	for _, dir := range []string{top, j.dir, j.work, j.state, j.home} {
		j.must(os.MkdirAll(dir, 0o755))
		j.must(os.Chmod(dir, 0o755)) //nolint:gosec // other users work below
		if as != nil {
			j.must(os.Chown(dir, int(as.Uid), int(as.Gid)))
		}
	}
	for _, dir := range []string{j.work, j.state} { // as muster makes them
		j.must(os.Chmod(dir, 0o700)) //nolint:gosec // a folder
	}
	t.Cleanup(func() {
		if t.Failed() {
			for _, path := range glob(t, filepath.Join(j.work, "log", "*", "*.log")) {
				t.Logf("%s:\n%s", path, child.Tail(read(path), 30))
			}
		}
		j.must(os.RemoveAll(top))
	})
	return j
}

func (j *job) must(err error) {
	j.t.Helper()
	if err != nil {
		j.t.Fatal(err)
	}
}

func glob(t testing.TB, pattern string) []string {
	t.Helper()
	found, err := filepath.Glob(pattern)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

type object = map[string]any

// define writes the app package.
func (j *job) define(command string, more settings) {
	j.t.Helper()
	global := settings{"muster.framework": "none", "muster.restart": "never", "muster.restart.backoff": "0.05"}
	if command != "" {
		global["muster.command"] = command
	}
	resources := settings{"yarn.role.priority": "1", "yarn.component.instances": "1", "yarn.memory": "64", "yarn.vcores": "1"}
	for key, value := range more {
		if _, ok := resources[key]; ok || strings.HasPrefix(key, "yarn.") {
			resources[key] = value
		} else {
			global[key] = value
		}
	}
	const schema = "http://example.org/specification/v2.0.0"
	files := map[string]any{
		"metainfo.json": object{"schemaVersion": "2.1", "application": object{
			"name": "confined", "version": "1", "components": []any{object{"name": "worker", "category": "SLAVE"}},
		}},
		"appConfig.default.json": object{"schema": schema, "global": global, "components": object{"worker": object{}}},
		"resources.default.json": object{"schema": schema, "global": object{}, "components": object{"worker": resources}},
	}
	for name, value := range files {
		text, err := json.MarshalIndent(value, "", "  ")
		j.must(err)
		j.must(os.WriteFile(filepath.Join(j.dir, name), text, 0o644))
	}
	programs := filepath.Join(j.dir, "package", "files")
	if _, err := os.Stat(programs); errors.Is(err, os.ErrNotExist) {
		j.must(os.MkdirAll(filepath.Dir(programs), 0o755))
		j.must(os.CopyFS(programs, os.DirFS("testdata")))
	}
}

// change edits a file of the app package.
func (j *job) change(name string, edit func(file object)) {
	j.t.Helper()
	path := filepath.Join(j.dir, name)
	var file object
	j.must(json.Unmarshal([]byte(read(path)), &file))
	edit(file)
	text, err := json.MarshalIndent(file, "", "  ")
	j.must(err)
	j.must(os.WriteFile(path, text, 0o644))
}

// environ of every muster of a job: nothing of who runs the test, so no launcher either.
func (j *job) environ() []string {
	all := []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=" + j.home, "TMPDIR=/tmp", "LANG=C", "MUSTER_AGENT_STATE_DIR=" + j.state}
	if race, ok := os.LookupEnv("GORACE"); ok { // for a MUSTER_BINARY with the race detector
		all = append(all, "GORACE="+race)
	}
	return append(all, j.env...)
}

// start runs a verb of muster.
func (j *job) start(args ...string) *process {
	j.t.Helper()
	return start(j.t, j.as, j.environ(), append(append([]string{}, j.wrap...), append([]string{j.muster}, args...)...)...)
}

// verb runs one to its end.
func (j *job) verb(args ...string) (out, said string, code int) {
	j.t.Helper()
	p := j.start(args...)
	code = p.wait()
	return p.out(), p.err(), code
}

// begin starts the whole app.
func (j *job) begin(args ...string) *process {
	j.t.Helper()
	return j.start(append([]string{"run", j.dir, "--app-id", j.app, "--work-dir", j.work, "--json"}, args...)...)
}

// ending is how a run has ended: its exit code, and what `muster run --json` printed.
type ending struct {
	status.ResultFile
	code int
	said string
}

// end waits for it.
func (j *job) end(p *process) ending {
	j.t.Helper()
	e := ending{code: p.wait(), said: p.err()}
	if err := json.Unmarshal([]byte(p.out()), &e.ResultFile); err != nil {
		j.t.Fatalf("muster run --json: %v: %q, ended with %d\n%s", err, p.out(), e.code, p.err())
	}
	return e
}

// run runs the whole app to its end.
func (j *job) run(args ...string) ending {
	j.t.Helper()
	return j.end(j.begin(args...))
}

// succeeds runs it to an end that has to be a success, and gives what the first worker wrote.
func (j *job) succeeds(args ...string) string {
	j.t.Helper()
	e := j.run(args...)
	if e.code != 0 || e.Outcome != "succeeded" {
		j.t.Fatalf("%s, exit code %d: %s; want succeeded, 0\n%s", e.Outcome, e.code, e.Cause, e.said)
	}
	return j.log("stdout.log")
}

// fails asserts the class, the exit code and words of the cause.
func (e ending) fails(t testing.TB, class registry.Class, code int, words ...string) {
	t.Helper()
	got := "none"
	if e.Class != nil {
		got = *e.Class
	}
	if got != string(class) || e.code != code || e.Outcome != "failed" {
		t.Errorf("%s, class %s, exit code %d (%s), want failed, %s, %d\n%s", e.Outcome, got, e.code, e.Cause, class, code, e.said)
	}
	for _, word := range words {
		if !strings.Contains(e.Cause, word) {
			t.Errorf("cause %q, want %q in it", e.Cause, word)
		}
	}
}

// log is one of the first worker's files.
func (j *job) log(name string) string { return read(filepath.Join(j.work, "log", "worker-0", name)) }

// own is a path in the first worker's folder.
func (j *job) own(name string) string { return filepath.Join(j.work, "worker-0", name) }

// says waits until the first worker has written a line that begins with the word, and gives the rest of it.
func (j *job) says(word string) string {
	j.t.Helper()
	var rest string
	await(j.t, fmt.Sprintf("%q from the program", word), func() bool {
		text := j.log("stdout.log")
		found, ok := lineOf(text[:strings.LastIndexByte(text, '\n')+1], word)
		rest = found
		return ok
	})
	return rest
}

// lineOf is the rest of the first line that begins with a word.
func lineOf(text, word string) (string, bool) {
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), word); ok && (rest == "" || rest[0] == ' ') {
			return strings.TrimPrefix(rest, " "), true
		}
	}
	return "", false
}

// has asserts lines of a program's output, each by its first word.
func has(t testing.TB, output string, want map[string]string) {
	t.Helper()
	for word, rest := range want {
		if got, ok := lineOf(output, word); !ok || got != rest {
			t.Errorf("%s: got %q (said: %v), want %q", word, got, ok, rest)
		}
	}
}

// event is a line of events.jsonl.
type event struct {
	At       time.Time
	From, To string
	Cause    string
	Attempt  int
}

// sees waits until the first worker has come to a phase.
func (j *job) sees(phase string) {
	j.t.Helper()
	await(j.t, "worker-0 "+phase, func() bool {
		lines := bufio.NewScanner(strings.NewReader(j.log("events.jsonl")))
		for lines.Scan() {
			var e event
			if json.Unmarshal(lines.Bytes(), &e) == nil && e.To == phase {
				return true
			}
		}
		return false
	})
}

// report is what `muster status --json` says.
type report struct {
	Instances []status.Instance `json:"instances"`
}

func (j *job) status() report {
	j.t.Helper()
	out, said, code := j.verb("status", j.app, "--json")
	var r report
	if err := json.Unmarshal([]byte(out), &r); err != nil || code != 0 {
		j.t.Fatalf("status: %v, exit code %d: %s%s", err, code, out, said)
	}
	return r
}

// with is the settings with more of them.
func with(some settings, more settings) settings {
	all := maps.Clone(some)
	maps.Copy(all, more)
	return all
}

// engines are those that root has on a host where cgroups can be written.
func engines() []string { return []string{"container", "cgroup", "process"} }
