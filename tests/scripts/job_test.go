package scripts_test

import (
	"crypto/rand"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/muster-agent/muster/tests/child"
	"github.com/muster-agent/muster/tests/folder"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/status"
)

// settings are a definition's, by key.
type settings = map[string]string

// job is an app with everything that belongs to it. Methods end the test on errors.
type job struct {
	t     testing.TB
	app   string // app id
	dir   string // of the definition
	work  string
	state string
	home  string              // of every process: an empty one, so that its shells have little to read
	as    *syscall.Credential // who starts muster; nil: this user
	env   []string            // for muster, beside the rest
	wrap  []string            // what muster is started by
}

// newJob makes the folders of an app whose definition is still to be laid down. They belong to who starts it.
func newJob(t testing.TB, as *syscall.Credential) *job {
	t.Helper()
	top := folder.Temp(t, "ms-")
	j := &job{t: t, app: "s" + strings.ToLower(rand.Text()[:8]), as: as}
	j.dir, j.work, j.state, j.home = filepath.Join(top, "app"), filepath.Join(top, "w"), filepath.Join(top, "s"), filepath.Join(top, "h")
	for _, dir := range []string{top, j.dir, j.work, j.state, j.home} {
		j.must(os.MkdirAll(dir, 0o755))
		j.must(os.Chmod(dir, 0o755)) //nolint:gosec // other users work below
		if as != nil {
			j.must(os.Chown(dir, int(as.Uid), int(as.Gid)))
		}
	}
	j.must(os.Chmod(j.state, 0o700)) //nolint:gosec // a folder
	t.Cleanup(func() {
		if t.Failed() {
			for _, path := range append(glob(t, filepath.Join(j.work, "log", "*", "*.log")), glob(t, filepath.Join(j.work, "log", "*", "errors-*"))...) {
				t.Logf("%s:\n%s", path, child.Tail(read(path), 30))
			}
		}
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

// environ of every muster of a job: nothing of who runs the test, so no launcher either.
func (j *job) environ() []string {
	all := []string{
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=" + j.home, "TMPDIR=/tmp", "LANG=C",
		"MUSTER_AGENT_STATE_DIR=" + j.state, "XDG_CACHE_HOME=" + images,
	}
	if race, ok := os.LookupEnv("GORACE"); ok { // for a MUSTER_BINARY with the race detector
		all = append(all, "GORACE="+race)
	}
	return append(all, j.env...)
}

// start runs a verb of muster.
func (j *job) start(args ...string) *process {
	j.t.Helper()
	return start(j.t, j.as, j.environ(), append(append(slices.Clone(j.wrap), muster), args...)...)
}

// verb runs one to its end.
func (j *job) verb(args ...string) (out, said string, code int) {
	j.t.Helper()
	p := j.start(args...)
	code = p.wait()
	return p.out(), p.err(), code
}

// does runs one that has to work, and gives what it printed.
func (j *job) does(args ...string) string {
	j.t.Helper()
	out, said, code := j.verb(args...)
	if code != 0 {
		j.t.Fatalf("muster %s: %d: %s%s", strings.Join(args, " "), code, out, said)
	}
	return out
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

// stop ends a run that is under way, by the verb, and asserts that it is a stop.
func (j *job) stop(p *process) {
	j.t.Helper()
	j.does("stop", j.app)
	if e := j.end(p); e.Outcome != "stopped" || e.code != 0 {
		j.t.Errorf("%s, exit code %d (%s), want stopped, 0", e.Outcome, e.code, e.Cause)
	}
}

// succeeds asserts a success.
func (e ending) succeeds(t testing.TB) {
	t.Helper()
	if e.Outcome != "succeeded" || e.code != 0 {
		t.Errorf("%s, exit code %d (%s), want succeeded, 0\n%s", e.Outcome, e.code, e.Cause, e.said)
	}
}

// fails asserts the class, the exit code and the cause, in which * stands for anything.
func (e ending) fails(t testing.TB, class registry.Class, code int, cause string) {
	t.Helper()
	got := "none"
	if e.Class != nil {
		got = *e.Class
	}
	if got != string(class) || e.code != code || e.Outcome != "failed" {
		t.Errorf("%s, class %s, exit code %d (%s), want failed, %s, %d\n%s", e.Outcome, got, e.code, e.Cause, class, code, e.said)
	}
	if !like(e.Cause, cause) {
		t.Errorf("cause\n%s\nwant\n%s", e.Cause, cause)
	}
}

// like tells whether a text is as the pattern says, in which * stands for anything.
func like(text, pattern string) bool {
	parts := strings.Split(pattern, "*")
	if len(parts) == 1 {
		return text == pattern
	}
	if !strings.HasPrefix(text, parts[0]) {
		return false
	}
	text = text[len(parts[0]):]
	for _, part := range parts[1 : len(parts)-1] {
		_, rest, ok := strings.Cut(text, part)
		if !ok {
			return false
		}
		text = rest
	}
	return strings.HasSuffix(text, parts[len(parts)-1])
}

// log is a path in an instance's log folder.
func (j *job) log(instance, name string) string { return filepath.Join(j.work, "log", instance, name) }

// own is a path in an instance's folder.
func (j *job) own(instance, name string) string { return filepath.Join(j.work, instance, name) }

// event is a line of events.jsonl.
type event struct {
	At       time.Time
	From, To string
	Cause    string
	Attempt  int
}

// events are an instance's transitions until now.
func (j *job) events(instance string) []event {
	var all []event
	for line := range strings.Lines(read(j.log(instance, "events.jsonl"))) {
		var e event
		if json.Unmarshal([]byte(line), &e) == nil { // the last line may be half there
			all = append(all, e)
		}
	}
	return all
}

// sees waits until an instance has come to a phase in an attempt.
func (j *job) sees(instance, phase string, attempt int) event {
	j.t.Helper()
	var found event
	await(j.t, instance+" "+phase+" in attempt "+strconv.Itoa(attempt), func() bool {
		all := j.events(instance)
		i := slices.IndexFunc(all, func(e event) bool { return e.To == phase && e.Attempt == attempt })
		if i >= 0 {
			found = all[i]
		}
		return i >= 0
	})
	return found
}

// noted is when an agent first wrote a line with these words into its log.
func (j *job) noted(instance, words string) (at time.Time, ok bool) {
	for line := range strings.Lines(read(j.log(instance, "agent.log"))) {
		if strings.Contains(line, words) {
			stamp, _, _ := strings.Cut(strings.TrimPrefix(line, "time="), " ")
			at, err := time.Parse(time.RFC3339Nano, stamp)
			return at, err == nil
		}
	}
	return time.Time{}, false
}

// notes waits for such a line.
func (j *job) notes(instance, words string) time.Time {
	j.t.Helper()
	var at time.Time
	await(j.t, "in the log of "+instance+": "+words, func() bool {
		found, ok := j.noted(instance, words)
		at = found
		return ok
	})
	return at
}

// says waits until a file in an instance's log folder has these words.
func (j *job) says(instance, file, words string) {
	j.t.Helper()
	await(j.t, words+" in "+file+" of "+instance, func() bool { return strings.Contains(read(j.log(instance, file)), words) })
}

// report is what `muster status --json` says.
type report struct {
	Generation int               `json:"generation"`
	Instances  []status.Instance `json:"instances"`
}

func (j *job) status() report {
	j.t.Helper()
	var r report
	j.must(json.Unmarshal([]byte(j.does("status", j.app, "--json")), &r))
	return r
}

// instance is one of it.
func (r report) instance(t testing.TB, name string) status.Instance {
	t.Helper()
	i := slices.IndexFunc(r.Instances, func(in status.Instance) bool { return in.Instance == name })
	if i < 0 {
		t.Fatalf("status knows no %s", name)
	}
	return r.Instances[i]
}
