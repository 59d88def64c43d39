// Package mpi_test runs MPI jobs as their users do: the built muster, Debian's Open MPI, no sshd. What is asserted is what
// the processes printed, what muster says of the run, and what the agents' logs say of how its processes came to other
// instances. Every wait is for a line or an end, and a watchdog ends only a test that has gone wrong.
package mpi_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/muster-agent/muster/tests/binary"
	"github.com/muster-agent/muster/tests/folder"
	"github.com/muster-agent/muster/tests/need"
)

// watchdog bounds a run: on busy cores processes that talk by MPI take long.
const watchdog = 120 * time.Second

// checkout is the root of the repository, seen from this folder.
const checkout = "../.."

// muster is the program under test; TestMain builds it.
var muster string

func TestMain(m *testing.M) {
	os.Exit(binary.Main(func(built string) int {
		muster = built
		return m.Run()
	}))
}

// openMPI are the variables by which Open MPI runs from where it was unpacked.
func openMPI(t testing.TB) []string {
	t.Helper()
	out, err := exec.Command(filepath.Join(checkout, "scripts/lab/openmpi"), "environment").Output()
	if err != nil {
		need.Skip(t, "scripts/lab/openmpi: "+err.Error())
	}
	return strings.Fields(string(out))
}

// job is an app with everything that belongs to it. Methods end the test on errors.
type job struct {
	t     testing.TB
	app   string
	dir   string
	work  string
	state string
	env   []string // of Open MPI
}

type settings = map[string]string

// newJob lays out an app of n workers whose processes run a program of testdata.
func newJob(t testing.TB, n int, program string, more settings) *job {
	t.Helper()
	top := folder.Temp(t, "mm-")
	j := &job{t: t, app: "m" + strings.ToLower(rand.Text()[:8]), dir: filepath.Join(top, "app"), work: filepath.Join(top, "w"), state: filepath.Join(top, "s"), env: openMPI(t)}
	t.Cleanup(func() {
		if t.Failed() {
			logs, _ := filepath.Glob(filepath.Join(j.work, "log", "*", "*.log"))
			for _, path := range logs {
				text := j.read(path)
				t.Logf("%s:\n%s", path, text[max(0, len(text)-6000):])
			}
		}
	})
	global := settings{
		"muster.framework": "mpi", "muster.restart.backoff": "0.05",
		"muster.command": "exec python3 app/definition/package/files/" + program,
	}
	for _, e := range j.env {
		name, value, _ := strings.Cut(e, "=")
		global["muster.env."+name] = value
	}
	maps.Copy(global, more)
	const schema = "http://example.org/specification/v2.0.0"
	worker := settings{"yarn.role.priority": "1", "yarn.component.instances": fmt.Sprint(n), "yarn.memory": "256", "yarn.vcores": "1"}
	type object = map[string]any
	for name, value := range map[string]any{
		"metainfo.json": object{"schemaVersion": "2.1", "application": object{
			"name": "ring", "version": "1", "components": []any{object{"name": "worker", "category": "SLAVE"}},
		}},
		"appConfig.default.json": object{"schema": schema, "global": global, "components": object{"worker": object{}}},
		"resources.default.json": object{"schema": schema, "global": object{}, "components": object{"worker": worker}},
	} {
		text, err := json.Marshal(value)
		j.must(err)
		j.must(os.MkdirAll(j.dir, 0o755))
		j.must(os.WriteFile(filepath.Join(j.dir, name), text, 0o644)) //nolint:gosec // as above
	}
	j.must(os.MkdirAll(filepath.Join(j.dir, "package"), 0o755))
	j.must(os.CopyFS(filepath.Join(j.dir, "package", "files"), os.DirFS("testdata")))
	return j
}

func (j *job) must(err error) {
	j.t.Helper()
	if err != nil {
		j.t.Fatal(err)
	}
}

func (j *job) read(path string) string {
	text, _ := os.ReadFile(path) // not there yet is empty
	return string(text)
}

// log is what an instance's agent says.
func (j *job) log(instance string) string {
	return j.read(filepath.Join(j.work, "log", instance, "agent.log"))
}

// result is what muster run prints.
type result struct {
	Outcome, Cause string
	Generations    int
}

// command is a muster with nothing of who runs the test.
func (j *job) command(args ...string) *exec.Cmd {
	ctx, cancel := context.WithTimeout(context.Background(), watchdog)
	j.t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, muster, args...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + j.work, "LANG=C"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = watchdog / 4
	return cmd
}

// run is muster run to its end.
func (j *job) run(args ...string) result {
	j.t.Helper()
	cmd := j.command(append([]string{"run", j.dir, "--json", "--app-id", j.app, "--work-dir", j.work, "--state-dir", j.state}, args...)...)
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.Output()
	var r result
	if bad := json.Unmarshal(out, &r); bad != nil {
		j.t.Fatalf("muster run: %v, %v\n%s", err, bad, said.String())
	}
	return r
}

// succeeds asserts that outcome.
func (j *job) succeeds(r result) {
	j.t.Helper()
	if r.Outcome != "succeeded" {
		j.t.Fatalf("%+v", r)
	}
}

// await looks again and again until see says yes.
func (j *job) await(what string, see func() bool) {
	j.t.Helper()
	poll := time.NewTicker(50 * time.Millisecond)
	defer poll.Stop()
	dog := time.NewTimer(watchdog)
	defer dog.Stop()
	for !see() {
		select {
		case <-poll.C:
		case <-dog.C:
			j.t.Fatalf("not seen within %s: %s", watchdog, what)
		}
	}
}

// seats reads where each rank of a ring ran, of the lines that ring.py leaves in each instance's folder.
func (j *job) seats(instances ...string) []string {
	j.t.Helper()
	var all []string
	for _, in := range instances {
		found, err := filepath.Glob(filepath.Join(j.work, in, "rank-*"))
		j.must(err)
		for _, path := range found {
			all = append(all, in+": "+strings.TrimSpace(j.read(path)))
		}
	}
	return all
}
