package data_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/muster-agent/muster/tests/folder"
)

// savedFile is what `muster save --json` prints.
type savedFile struct {
	Stamp  string            `json:"stamp"`
	To     []string          `json:"to"`
	Saved  int               `json:"saved"`
	Files  int               `json:"files"`
	Failed map[string]string `json:"failed"`
}

var stampForm = regexp.MustCompile(`^\d{4}(_\d\d){5}$`)

// verb runs another command on the job.
func (j *job) verb(args ...string) (out, said string, code int) {
	j.t.Helper()
	var o, e strings.Builder
	cmd := j.command(args...)
	cmd.Stdout, cmd.Stderr = &o, &e
	err := cmd.Run()
	if cmd.ProcessState == nil {
		j.t.Fatal(err)
	}
	return o.String(), e.String(), cmd.ProcessState.ExitCode()
}

func (j *job) save(args ...string) savedFile {
	j.t.Helper()
	out, said, code := j.verb(append([]string{"save", j.app, "--json"}, args...)...)
	var s savedFile
	if code != 0 || json.Unmarshal([]byte(out), &s) != nil || !stampForm.MatchString(s.Stamp) {
		j.t.Fatalf("save: exit code %d, %s\n%s", code, out, said)
	}
	return s
}

// runs waits until so many processes have said so in a file.
func (j *job) runs(names ...string) {
	j.t.Helper()
	for _, name := range names {
		await(j.t, name, func() bool { _, err := os.Stat(filepath.Join(j.work, name)); return err == nil })
	}
}

// All instances save with one time; the second save has only what has changed. What is left at the end is another thing.
func TestSaves(t *testing.T) {
	t.Parallel()
	j := newJob(t, 2, settings{
		"muster.command": `echo $MUSTER_INDEX > model/who; echo first > model/step; touch ready
			until [ -e second ]; do sleep 0.05; done; echo later > model/step; touch again
			until [ -e go ]; do sleep 0.05; done; echo trained > model/step`,
		"muster.output.model": "out", "muster.outputs.incremental": "true",
	})
	end := j.begin(j.command(j.runArgs("--engine", "process")...))
	j.runs("worker-0/ready", "worker-1/ready")
	first := j.save()
	want := "file:" + j.store + "/out/interResult/interResult_"
	if first.Saved != 2 || first.Files != 4 || len(first.Failed) != 0 || !slices.Equal(first.To, []string{want + first.Stamp}) {
		t.Errorf("first save: got %+v, want 4 files of 2 instances in %s", first, want+first.Stamp)
	}
	for _, in := range []string{"worker-0", "worker-1"} {
		j.must(os.WriteFile(filepath.Join(j.work, in, "second"), nil, 0o600))
	}
	j.runs("worker-0/again", "worker-1/again")
	second := j.save()
	if second.Saved != 2 || second.Files != 2 || second.Stamp <= first.Stamp {
		t.Errorf("second save: got %+v, want the 2 files that have changed since %s", second, first.Stamp)
	}
	j.must(os.WriteFile(filepath.Join(j.work, "worker-0", "go"), nil, 0o600))
	j.must(os.WriteFile(filepath.Join(j.work, "worker-1", "go"), nil, 0o600))
	end().succeeds(t)
	one, two := "interResult/interResult_"+first.Stamp+"/", "interResult/interResult_"+second.Stamp+"/"
	j.same(j.files(filepath.Join(j.store, "out")), map[string]string{
		"_SUCCESS": "", "worker-0/who": "0\n", "worker-0/step": "trained\n", "worker-1/who": "1\n", "worker-1/step": "trained\n",
		one + "worker-0/who": "0\n", one + "worker-0/step": "first\n", one + "worker-1/who": "1\n", one + "worker-1/step": "first\n",
		two + "worker-0/step": "later\n", two + "worker-1/step": "later\n",
	})
	if out, said, code := j.verb("save", j.app); code != 1 || !strings.Contains(said, "is over: succeeded") {
		t.Errorf("after the end: exit code %d, %s%s", code, out, said)
	}
}

// The conductor's clock saves as well; and a stop does when it is asked to, by Ctrl-C it does not.
func TestSavesByTheClockAndBeforeAStop(t *testing.T) {
	t.Parallel()
	const command = "echo $MUSTER_INDEX > model/who; touch ready; exec sleep 600"
	j := newJob(t, 2, settings{"muster.command": command, "muster.output.model": "out", "global:muster.outputs.interval": "1s"})
	end := j.begin(j.command(j.runArgs("--engine", "process")...))
	saves := func(dir string) []string {
		all, err := filepath.Glob(filepath.Join(dir, "out/interResult/interResult_*/worker-?/who"))
		j.must(err)
		return all
	}
	await(t, "two saves by the clock", func() bool { return len(saves(j.store)) >= 4 })
	if out, said, code := j.verb("stop", j.app); code != 0 || !strings.Contains(out, "stopped") {
		t.Errorf("stop: exit code %d, %s%s", code, out, said)
	}
	if e := end(); e.Outcome != "stopped" {
		t.Errorf("got %s (%s)", e.Outcome, e.Cause)
	}

	j = newJob(t, 2, settings{"muster.command": command, "muster.output.model": "out"})
	folder.OfAll(t, filepath.Join(j.store, "out")) // another app's processes are others on this host
	end = j.begin(j.command(j.runArgs("--engine", "process")...))
	j.runs("worker-0/ready", "worker-1/ready")
	if out, said, code := j.verb("stop", j.app, "--save"); code != 0 || !strings.Contains(out, "stopped") {
		t.Errorf("stop --save: exit code %d, %s%s", code, out, said)
	}
	if e := end(); e.Outcome != "stopped" || e.code != 0 {
		t.Errorf("got %s, exit code %d (%s)", e.Outcome, e.code, e.Cause)
	}
	if got := saves(j.store); len(got) != 2 || filepath.Dir(filepath.Dir(got[0])) != filepath.Dir(filepath.Dir(got[1])) {
		t.Errorf("saved before the stop: %v, want one save of two", got)
	}
	if left, err := filepath.Glob(filepath.Join(j.store, "out", "[^i]*")); err != nil || len(left) > 0 {
		t.Errorf("a run that was stopped has left %v, %v", left, err)
	}
	j.app += "b" // saves are no outputs: another run may follow
	j.define(2, settings{"muster.command": "echo done > model/who", "muster.output.model": "out"})
	j.run("--engine", "process").succeeds(t)
}
