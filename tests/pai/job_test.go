package pai_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/muster-agent/muster/shim/status"
	"github.com/muster-agent/muster/tests/folder"
)

// job is a job file with everything that belongs to it. Methods end the test on errors.
type job struct {
	t     testing.TB
	app   string
	top   string // of all that follows
	file  string // the job file
	work  string
	store string // the file system that its paths are in
}

// newJob lays a job file down.
func newJob(t testing.TB, text string) *job {
	t.Helper()
	top := folder.Temp(t, "mp-")
	j := &job{t: t, app: "p" + strings.ToLower(rand.Text()[:8]), top: top, file: filepath.Join(top, "job.json"), work: filepath.Join(top, "w"), store: filepath.Join(top, "fs")}
	t.Cleanup(func() {
		if t.Failed() {
			logs, _ := filepath.Glob(filepath.Join(j.work, "log", "*", "*.log"))
			for _, path := range logs {
				text := read(path)
				t.Logf("%s:\n%s", path, text[max(0, len(text)-4000):])
			}
		}
	})
	folder.OfAll(t, j.store)
	j.must(os.Mkdir(filepath.Join(top, "home"), 0o755))
	j.must(os.WriteFile(j.file, []byte(text), 0o600))
	return j
}

func (j *job) must(err error) {
	j.t.Helper()
	if err != nil {
		j.t.Fatal(err)
	}
}

// lay writes a file below the job's file system.
func (j *job) lay(name, text string) {
	j.t.Helper()
	path := filepath.Join(j.store, name)
	j.must(os.MkdirAll(filepath.Dir(path), 0o755))
	j.must(os.WriteFile(path, []byte(text), 0o644)) //nolint:gosec // tasks read it
}

// runnable makes a program of such a file.
func (j *job) runnable(name string) {
	j.t.Helper()
	j.must(os.Chmod(filepath.Join(j.store, name), 0o755)) //nolint:gosec // a program
}

// command is a muster with nothing of who runs the test, so no launcher either.
func (j *job) command(args ...string) *exec.Cmd {
	ctx, cancel := context.WithTimeout(context.Background(), watchdog)
	j.t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, muster, args...)
	cmd.Env = []string{
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=" + filepath.Join(j.top, "home"), "TMPDIR=/tmp", "LANG=C",
		"MUSTER_AGENT_STATE_DIR=" + filepath.Join(j.top, "s"), "XDG_CACHE_HOME=" + filepath.Join(j.top, "cache"), "GORACE=" + os.Getenv("GORACE"),
	}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = watchdog / 4
	return cmd
}

// ending is how a run has ended: its exit code, what `muster run --json` printed, and what it said.
type ending struct {
	status.ResultFile
	code int
	said string
}

// run runs the job in its own file system to its end, of which nothing may be left.
func (j *job) run(args ...string) ending {
	j.t.Helper()
	cmd := j.command(append([]string{"run", j.file, "--app-id", j.app, "--work-dir", j.work, "--json", "--default-fs", "file:" + j.store}, args...)...)
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	err := cmd.Run()
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
		j.t.Fatalf("muster run: %v\n%s", err, said.String())
	}
	e := ending{code: cmd.ProcessState.ExitCode(), said: said.String()}
	if out.Len() > 0 {
		j.must(json.Unmarshal(out.Bytes(), &e.ResultFile))
	}
	j.nothingLeft()
	return e
}

// onHost runs the job without its image: in the host's root.
func (j *job) onHost(args ...string) ending {
	j.t.Helper()
	return j.run(append([]string{"--set", "global:muster.image=host"}, args...)...)
}

// nothingLeft asserts that neither process, cgroup nor mount of the job is there.
func (j *job) nothingLeft() {
	j.t.Helper()
	environs, err := filepath.Glob("/proc/[0-9]*/environ")
	j.must(err)
	for _, file := range environs {
		if slices.Contains(strings.Split(read(file), "\x00"), "MUSTER_APP_ID="+j.app) {
			j.t.Errorf("%s is left", filepath.Dir(file))
		}
	}
	for line := range strings.Lines(read("/proc/self/mountinfo")) {
		if strings.Contains(line, j.top+"/") {
			j.t.Errorf("a mount is left: %s", line)
		}
	}
	for _, pattern := range []string{
		"/sys/fs/cgroup/*/muster/" + j.app, "/sys/fs/cgroup/muster/" + j.app, // of version 1, of 2
		filepath.Join(j.work, "root", "*"), filepath.Join(j.top, "s", "apps", j.app, "*-*.json"),
	} {
		left, err := filepath.Glob(pattern)
		j.must(err)
		if len(left) > 0 {
			j.t.Errorf("%v are left", left)
		}
	}
}

// log is what a task has written to stdout.
func (j *job) log(task string) string {
	return read(filepath.Join(j.work, "log", task, "stdout.log"))
}

// is asserts the outcome, the exit code, how often the job was formed, and words of the cause. Nothing restarts in place.
func (e ending) is(t testing.TB, outcome string, code, generations int, words ...string) {
	t.Helper()
	if e.Outcome != outcome || e.code != code || e.Generations != generations || generations == 1 && e.Restarts > 0 {
		t.Errorf("%s, exit code %d, %d generations, %d restarts (%s), want %s, %d, %d\n%s",
			e.Outcome, e.code, e.Generations, e.Restarts, e.Cause, outcome, code, generations, e.said)
	}
	for _, w := range words {
		if !strings.Contains(e.Cause, w) {
			t.Errorf("cause %q: want %q in it", e.Cause, w)
		}
	}
}

// exit is how a task ended, as a shell sees it; -1: no process ran.
func (e ending) exit(t testing.TB, task string) int {
	t.Helper()
	i := slices.IndexFunc(e.Instances, func(in status.Instance) bool { return in.Instance == task })
	if i < 0 {
		t.Fatalf("the result knows no %s", task)
	}
	if e.Instances[i].Exit == nil {
		return -1
	}
	return *e.Instances[i].Exit
}
