package sides_test

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/muster-agent/muster/tests/child"
	"github.com/muster-agent/muster/tests/folder"

	"github.com/muster-agent/muster/shim/status"
)

type object = map[string]any

// job is an app with everything that belongs to it. Methods end the test on errors.
type job struct {
	t    testing.TB
	app  string
	dir  string // of all that follows
	cmd  *exec.Cmd
	out  bytes.Buffer
	said bytes.Buffer
	run  *child.Process
}

// component is one of an app.
type component struct {
	name      string
	instances int
	config    object
}

// newJob lays an app down: its components, what they share, and its programs by name.
func newJob(t testing.TB, global object, programs map[string]string, components ...component) *job {
	t.Helper()
	top := folder.Temp(t, "msd-")
	j := &job{t: t, app: "sd" + strings.ToLower(rand.Text()[:8]), dir: top}
	t.Cleanup(j.cleanUp)
	const schema = "http://example.org/specification/v2.0.0"
	var meta []object
	sections, resources := object{}, object{}
	for i, c := range components {
		meta = append(meta, object{"name": c.name, "category": "MASTER"})
		if c.config != nil {
			sections[c.name] = c.config
		}
		resources[c.name] = object{"yarn.role.priority": strconv.Itoa(i + 1), "yarn.component.instances": strconv.Itoa(c.instances), "yarn.memory": "128"}
	}
	j.lay("metainfo.json", object{"schemaVersion": "2.1", "application": object{"name": "sides", "version": "1", "components": meta}})
	j.lay("appConfig.json", object{"schema": schema, "metadata": object{}, "global": global, "components": sections})
	j.lay("resources.json", object{"schema": schema, "metadata": object{}, "global": object{}, "components": resources})
	for name, text := range programs {
		j.write(filepath.Join("app", "package", "files", name), []byte(text))
	}
	for _, folder := range []string{"w", "s", "h"} {
		j.must(os.MkdirAll(filepath.Join(top, folder), 0o700))
	}
	return j
}

func (j *job) lay(name string, document object) {
	j.t.Helper()
	text, err := json.Marshal(document)
	j.must(err)
	j.write(filepath.Join("app", name), text)
}

func (j *job) write(name string, text []byte) {
	j.t.Helper()
	path := filepath.Join(j.dir, name)
	j.must(os.MkdirAll(filepath.Dir(path), 0o755))
	j.must(os.WriteFile(path, text, 0o644))
}

func (j *job) must(err error) {
	j.t.Helper()
	if err != nil {
		j.t.Fatal(err)
	}
}

// command is a verb of muster, with nothing of who runs the test in its environment.
func (j *job) command(args ...string) *exec.Cmd {
	cmd := exec.Command(muster, args...)
	cmd.Dir = "/"
	cmd.Env = []string{
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C", "TMPDIR=/tmp",
		"HOME=" + filepath.Join(j.dir, "h"), "MUSTER_AGENT_STATE_DIR=" + filepath.Join(j.dir, "s"), "GORACE=" + os.Getenv("GORACE"),
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	return cmd
}

// begin starts the whole app.
func (j *job) begin(engine string) {
	j.t.Helper()
	j.cmd = j.command("run", filepath.Join(j.dir, "app"), "--app-id", j.app, "--work-dir", filepath.Join(j.dir, "w"), "--json", "--engine", engine)
	j.cmd.Stdout, j.cmd.Stderr = &j.out, &j.said
	var err error
	j.run, err = child.Start(j.cmd)
	j.must(err)
}

// await looks until what is waited for is there; a run that has ended shows no more.
func (j *job) await(what string, see func() bool) {
	j.t.Helper()
	end := time.Now().Add(watchdog)
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	for over := false; !see(); over = j.ended(0) {
		if over || time.Now().After(end) {
			j.t.Fatalf("not seen (the run has ended: %t): %s", over, what)
		}
		<-look.C
	}
}

// ended tells whether the run has ended, or does within the limit; one that has not begun has not.
func (j *job) ended(within time.Duration) bool { return j.run != nil && j.run.Ended(within) }

func (j *job) cleanUp() {
	if j.cmd != nil && j.cmd.Process != nil {
		for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGTERM, syscall.SIGKILL} {
			if j.ended(0) {
				break
			}
			_ = j.cmd.Process.Signal(sig)
			j.ended(10 * time.Second)
		}
	}
	if !j.t.Failed() {
		return
	}
	logs, _ := filepath.Glob(filepath.Join(j.dir, "w", "log", "*", "*.log"))
	for _, path := range logs {
		j.t.Logf("%s:\n%s", path, read(path))
	}
	if j.ended(0) {
		j.t.Logf("muster run said:\n%s%s", j.said.String(), j.out.String())
	}
}

// ends waits for the run's end and asserts its outcome, and that nothing is left of it.
func (j *job) ends(outcome string) {
	j.t.Helper()
	if !j.ended(watchdog) {
		j.t.Fatalf("the run has not ended within %s", watchdog)
	}
	var result status.ResultFile
	if err := json.Unmarshal(j.out.Bytes(), &result); err != nil || result.Outcome != outcome {
		j.t.Errorf("outcome %q (%s), %v, want %s\n%s%s", result.Outcome, result.Cause, err, outcome, j.said.String(), j.out.String())
	}
	if left := j.processes(""); len(left) > 0 {
		j.t.Errorf("left: %v", left)
	}
}

func (j *job) log(instance, name string) string {
	return read(filepath.Join(j.dir, "w", "log", instance, name))
}

// says waits until a log of an instance has these words so many times.
func (j *job) says(instance, file, words string) {
	j.t.Helper()
	j.await(words+" in "+file+" of "+instance, func() bool { return strings.Contains(j.log(instance, file), words) })
}

// instance is what `muster status --json` says of one.
func (j *job) instance(name string) status.Instance {
	j.t.Helper()
	text, err := j.command("status", j.app, "--json").Output()
	j.must(err)
	var r struct {
		Instances []status.Instance `json:"instances"`
	}
	j.must(json.Unmarshal(text, &r))
	i := slices.IndexFunc(r.Instances, func(in status.Instance) bool { return in.Instance == name })
	if i < 0 {
		j.t.Fatalf("status knows no %s: %s", name, text)
	}
	return r.Instances[i]
}

// processes are those of the job that run as this side process; those of the whole job for "".
func (j *job) processes(side string) []int {
	j.t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/environ")
	j.must(err)
	var found []int
	for _, file := range files {
		env := strings.Split(read(file), "\x00")
		if !slices.Contains(env, "MUSTER_APP_ID="+j.app) || side != "" && !slices.Contains(env, "MUSTER_SIDE="+side) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		j.must(err)
		found = append(found, pid)
	}
	return found
}
