package data_test

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// place is where outputs go, as somebody sees it who reads them.
type place interface {
	// files are those that are there, by path below the place, with their content.
	files() map[string]string
	// bytes are how many there are in all files, below _temporary too.
	bytes() int64
}

// onDisk is a place on this machine.
type onDisk struct {
	j   *job
	dir string
}

func (f onDisk) files() map[string]string { return f.j.files(f.dir) }

func (f onDisk) bytes() (n int64) {
	_ = filepath.WalkDir(f.dir, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			if info, err := d.Info(); err == nil { // else it went meanwhile
				n += info.Size()
			}
		}
		return nil
	})
	return n
}

// manyFiles is a command that makes so many files of 3,000 bytes in the folder model, each with its number, and what they
// are then.
func manyFiles(n int) (command string, want map[string]string) {
	want = map[string]string{}
	for i := range n {
		want["part-"+strconv.Itoa(i)] = strings.Repeat("x", 3000-8) + strconv.Itoa(10_000_000 + i)[:8]
	}
	return `x=$(head -c 2992 /dev/zero | tr '\0' x); i=0; while [ $i -lt ` + strconv.Itoa(n) + ` ]; do printf '%s%d' "$x" $((10000000 + i)) > model/part-$i; i=$((i+1)); done`, want
}

// kill ends the agent of an instance for good, at once.
func (j *job) kill(instance string) {
	j.t.Helper()
	var record struct {
		Pid int `json:"pid"`
	}
	j.read(filepath.Join(j.state, "apps", j.app, instance+".json"), &record)
	j.must(syscall.Kill(record.Pid, syscall.SIGKILL))
	await(j.t, "the agent's death", func() bool {
		state, err := os.ReadFile("/proc/" + strconv.Itoa(record.Pid) + "/stat")
		return err != nil || strings.Contains(string(state), ") Z ")
	})
}

// killedInMidUpload kills an agent when so many bytes of its outputs are at the place: nothing of them is seen there, and
// the agent that is launched in its place leaves them whole. what are the files that it should leave.
func (j *job) killedInMidUpload(at place, want map[string]string, n int64) {
	j.t.Helper()
	cmd := j.command(j.runArgs("--engine", "process")...)
	end := j.begin(cmd)
	await(j.t, "some of the outputs", func() bool { return at.bytes() >= n })
	j.must(cmd.Process.Signal(syscall.SIGSTOP)) // it would launch another at once
	j.kill("worker-0")
	seen := at.files()
	for name := range seen {
		if !strings.HasPrefix(name, "_temporary/") {
			j.t.Errorf("killed, and there is %s", name)
		}
	}
	if whole := "_temporary/" + j.app; slices.ContainsFunc(slices.Collect(maps.Keys(seen)), func(name string) bool {
		return strings.HasPrefix(name, whole) && strings.Contains(name, "/whole/")
	}) {
		j.t.Fatal("the agent was killed too late: all is there")
	}
	j.must(cmd.Process.Signal(syscall.SIGCONT))
	end().succeeds(j.t)
	all := map[string]string{"_SUCCESS": ""}
	for name, text := range want {
		all["worker-0/"+name] = text
	}
	j.same(at.files(), all)
}

func TestKilledInMidUpload(t *testing.T) {
	t.Parallel()
	command, want := manyFiles(600)
	j := newJob(t, 1, settings{"muster.command": command, "muster.output.model": "out"})
	j.killedInMidUpload(onDisk{j, filepath.Join(j.store, "out")}, want, 100_000)
}

// An agent that is killed between the verdict and the name of its outputs is launched again and completes them; there is no
// _SUCCESS before.
func TestKilledAfterTheVerdict(t *testing.T) {
	t.Parallel()
	j := newJob(t, 2, settings{"muster.command": "echo $MUSTER_INDEX > model/who", "muster.output.model": "out"})
	out := filepath.Join(j.store, "out")
	// A link to nowhere is in the way of the name: the agent goes on trying.
	command := "echo $MUSTER_INDEX > model/who; if [ $MUSTER_INDEX = 0 ]; then ln -s nowhere " + out + "/worker-0; fi"
	end := j.begin(j.command(j.runArgs("--engine", "process", "--set", "worker:muster.command="+command)...))
	await(t, "the other's output", func() bool { return read(filepath.Join(out, "worker-1", "who")) == "1\n" })
	await(t, "the verdict in worker-0's log", func() bool { return strings.Contains(j.log("worker-0"), "to=leaving") })
	j.kill("worker-0")
	if _, err := os.Stat(filepath.Join(out, "_SUCCESS")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("_SUCCESS before all is there: %v", err)
	}
	j.must(os.Remove(filepath.Join(out, "worker-0")))
	e := end()
	e.succeeds(t)
	if !strings.Contains(e.said, "after the verdict: launching it again") {
		t.Errorf("nobody launched it again: %s", e.said)
	}
	j.same(j.files(out), map[string]string{"_SUCCESS": "", "worker-0/who": "0\n", "worker-1/who": "1\n"})
}

// A parameter server's outputs are copied after the verdict. Its agent is killed meanwhile: what the folder on its host
// holds is left all the same.
func TestParameterServerKilledInMidUpload(t *testing.T) {
	t.Parallel()
	command, want := manyFiles(600)
	j := newJob(t, 1, nil)
	ready := filepath.Join(j.work, "ps-0", "ready")
	j.define(1, settings{
		"ps:muster.command": command + "; touch ready; exec sleep 600", "ps:muster.output.model": "out",
		"muster.command":          "until [ -e " + ready + " ]; do sleep 0.05; done; echo trained > model/worker",
		"muster.output.model":     "out",
		"global:muster.framework": "none",
	})
	at := onDisk{j, filepath.Join(j.store, "out")}
	end := j.begin(j.command(j.runArgs("--engine", "process")...))
	await(t, "some of the outputs", func() bool { return at.bytes() >= 100_000 })
	j.kill("ps-0")
	end().succeeds(t)
	all := map[string]string{"_SUCCESS": "", "worker-0/worker": "trained\n"}
	for name, text := range want {
		all["ps-0/"+name] = text
	}
	j.same(at.files(), all)
}

// Of a partial success there is what was whole: not what a worker was in the middle of, nor what a failed one had.
func TestOutputsOfAPartialSuccess(t *testing.T) {
	t.Parallel()
	j := newJob(t, 3, nil)
	j.define(3, settings{
		"muster.command": `echo $MUSTER_INDEX > model/who; cd ` + j.store + `; case $MUSTER_INDEX in
			0) touch failed; exit 3;; 1) until [ -e failed ]; do sleep 0.05; done;; 2) exec sleep 600;; esac`,
		"muster.output.model": "out", "muster.restart": "never", "muster.complete.minSucceeded": "1", "muster.complete.minFailed": "2",
	})
	j.run("--engine", "process").succeeds(t)
	out := filepath.Join(j.store, "out")
	j.same(j.files(out), map[string]string{"_SUCCESS": "", "worker-1/who": "1\n"})
	if _, err := os.Stat(filepath.Join(out, "_temporary")); err == nil {
		t.Error("_temporary is left")
	}
}

// A success whose outputs cannot get their names is told as one that is not done: by the exit code, and in words.
func TestOutputsThatCannotBeNamed(t *testing.T) {
	t.Parallel()
	j := newJob(t, 1, settings{"muster.command": "echo mine > model/who", "muster.output.model": "out"})
	out := filepath.Join(j.store, "out")
	e := j.run("--engine", "process", "--set", "worker:muster.command=echo mine > model/who; mkdir "+out+"/worker-0; echo his > "+out+"/worker-0/who")
	if e.Outcome != "succeeded" || e.code != 69 || !strings.Contains(e.said, "outputs of worker-0 are not at their place") {
		t.Errorf("%s, exit code %d, want succeeded, 69\n%s", e.Outcome, e.code, e.said)
	}
	if log := j.log("worker-0"); !strings.Contains(log, out+"/worker-0 is there already") {
		t.Errorf("agent.log does not say why: %s", log)
	}
	got := j.files(out)
	if got["worker-0/who"] != "his\n" {
		t.Errorf("what was there is %q", got["worker-0/who"])
	}
	if _, made := got["_SUCCESS"]; made {
		t.Error("_SUCCESS over what is not there")
	}
	kept := slices.ContainsFunc(slices.Collect(maps.Keys(got)), func(name string) bool { return strings.HasSuffix(name, "/worker-0/whole/who") })
	if !kept {
		t.Errorf("what could not be named is lost: %v", got)
	}
}
