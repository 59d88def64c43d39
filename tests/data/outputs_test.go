package data_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/muster-agent/muster/tests/folder"
	"github.com/muster-agent/muster/tests/need"
)

// A parameter server has not ended when the job is done: what it has made is left all the same.
func TestParameterServersOutputs(t *testing.T) {
	t.Parallel()
	j := newJob(t, 1, nil)
	ready := filepath.Join(j.work, "ps-0", "model", "ps") // the worker's end ends the job: first there must be something to leave
	j.define(1, settings{
		"ps:muster.command": "echo state > model/ps; exec sleep 600", "ps:muster.output.model": "out",
		"muster.command": "until [ -s " + ready + " ]; do sleep 0.05; done; echo trained > model/worker", "muster.output.model": "out",
		"global:muster.framework": "none",
	})
	j.run("--engine", "process").succeeds(t) // in a container the worker would not see the server's folder
	j.same(j.files(filepath.Join(j.store, "out")), map[string]string{"ps-0/ps": "state\n", "worker-0/worker": "trained\n", "_SUCCESS": ""})
}

// One instance leaves its outputs under their own names, or a single one without a folder of its own.
func TestOnlyAndFlat(t *testing.T) {
	t.Parallel()
	j := newJob(t, 3, settings{"muster.command": "echo $MUSTER_INDEX > model/who", "muster.output.model": "out", "muster.outputs.index": "1"})
	j.run().succeeds(t)
	j.same(j.files(filepath.Join(j.store, "out")), map[string]string{"model/who": "1\n", "_SUCCESS": ""})

	flat := newJob(t, 1, settings{"muster.command": "echo $MUSTER_INDEX > model/who", "muster.output.model": "out", "muster.outputs.flat": "true"})
	flat.run().succeeds(t)
	flat.same(flat.files(filepath.Join(flat.store, "out")), map[string]string{"model/who": "0\n", "_SUCCESS": ""})
}

// A failed process leaves nothing, or what it has where that is asked for.
func TestOutputsOfAFailure(t *testing.T) {
	t.Parallel()
	for failed, want := range map[string]map[string]string{"false": {}, "true": {"worker-0/half": "so far\n"}} {
		j := newJob(t, 1, settings{
			"muster.command": "echo so far > model/half; exit 3", "muster.output.model": "out", "muster.outputs.failed": failed, "muster.restart": "never",
		})
		j.run().fails(t, "app-error", 3)
		j.same(j.files(filepath.Join(j.store, "out")), want)
		if _, err := os.Stat(filepath.Join(j.store, "out", "_temporary")); err == nil {
			t.Errorf("failed=%s: _temporary is left", failed)
		}
	}
}

// A restart within the run replaces what the run left before; another run does not.
func TestTheSameRunReplaces(t *testing.T) {
	t.Parallel()
	j := newJob(t, 1, settings{
		"muster.command": "echo $MUSTER_ATTEMPT > model/attempt; [ $MUSTER_ATTEMPT = 2 ]", "muster.output.model": "out", "muster.outputs.failed": "true",
		"muster.restart": "instance", "muster.restart.backoff": "1s..1s",
	})
	j.run().succeeds(t)
	j.same(j.files(filepath.Join(j.store, "out")), map[string]string{"worker-0/attempt": "2\n", "_SUCCESS": ""})
	j.app += "b"
	j.run("--work-dir", j.work+"2").fails(t, "definition", 65, "is there already; remove it, or name another place")
}

// PAI's three folders: codeDir beside the program, outputDir for who uses it, dataDir as it is.
func TestCodeDir(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"0.5", "0.14", "1"} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			j := newJob(t, 1, settings{
				"global:muster.pai.version": version, "global:muster.pai.code.dir": "${NN_URI}/src", "global:muster.pai.output.dir": "${NN_URI}/Output/job",
				"muster.command": `src/run.sh && echo changed >> src/run.sh && ls > seen/cwd`, "muster.output.seen": "out", "muster.restart": "never",
			})
			j.lay(map[string]string{"src/run.sh": "#!/bin/sh\necho \"$0 $(cat $(dirname $0)/lib/name)\" > seen/ran\n", "src/lib/name": "lib"})
			j.must(os.Chmod(filepath.Join(j.store, "src/run.sh"), 0o755)) //nolint:gosec // it is run
			j.run().succeeds(t)
			j.same(j.files(filepath.Join(j.store, "out")),
				map[string]string{"worker-0/ran": "src/run.sh lib\n", "worker-0/cwd": "app\nroster.json\nseen\nsrc\n", "_SUCCESS": ""})
			if _, err := os.Stat(filepath.Join(j.store, "Output")); err == nil {
				t.Error("outputDir is made for a job that does not use it")
			}
		})
	}
	t.Run("output", func(t *testing.T) {
		t.Parallel()
		j := newJob(t, 1, settings{"global:muster.pai.version": "0.14", "global:muster.pai.output.dir": "Output/job", "muster.restart": "never"})
		out := filepath.Join(j.store, "Output", "job")
		j.run("--set", "worker:muster.command=PAI_OUTPUT_DIR="+out+"; echo made > $PAI_OUTPUT_DIR/it").succeeds(t)
		j.same(j.files(out), map[string]string{"it": "made\n"})
	})
	t.Run("too large", func(t *testing.T) {
		t.Parallel()
		j := newJob(t, 1, settings{"global:muster.pai.version": "0.14", "global:muster.pai.code.dir": "src", "muster.command": "true", "muster.restart": "never"})
		j.lay(map[string]string{"src/a": "", "src/b": "x"})
		j.must(os.Truncate(filepath.Join(j.store, "src", "a"), 200_000_000))
		j.run().fails(t, "definition", 65, "codeDir", "200000001 bytes", "at most 200000000")
	})
}

// HBox's own options say under which name outputs are left.
func TestHBoxOutputs(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		options []string
		want    map[string]string
	}{
		"a single worker":             {[]string{"--worker-num", "1"}, map[string]string{"worker-0/who": "0\n"}},
		"without a folder of its own": {[]string{"--worker-num", "1", "--create-containerid-dir", "false"}, map[string]string{"model/who": "0\n"}},
		"of two that is nothing":      {[]string{"--worker-num", "2", "--create-containerid-dir", "false"}, map[string]string{"worker-0/who": "0\n", "worker-1/who": "1\n"}},
		"of one of two":               {[]string{"--worker-num", "2", "--output-index", "1"}, map[string]string{"model/who": "1\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := newJob(t, 1, nil)
			words := append(tt.options, "--worker-memory", "64", "--output", "out#model", "sh", "-c", "echo $INDEX > model/who")
			j.submit(words...).succeeds(t)
			tt.want["_SUCCESS"] = "" // in the default filesystem
			j.same(j.files(filepath.Join(j.work, "store", "out")), tt.want)
		})
	}
}

// An absolute path of HBox is one of the default filesystem, also where that is a folder: its inputs, files, outputs and the
// board's logs are found below it, by root in a container too, which sees nothing else of this machine.
func TestHBoxAbsolutePaths(t *testing.T) {
	need.Root(t)
	t.Parallel()
	j := newJob(t, 1, nil)
	j.lay(map[string]string{
		"tmp/data/in/words": "w\n", "tmp/data/dict": "d\n",
		"bin/tensorboard": "#!/bin/sh\nprintf '%s\\n' \"$@\" >$MUSTER_LOG_DIR/board && exec sleep 1000\n",
	})
	folder.OfAll(t, filepath.Join(j.store, "tmp"))
	j.must(os.Chmod(filepath.Join(j.store, "bin/tensorboard"), 0o755)) //nolint:gosec // it is run
	j.env = append(j.env, "MUSTER_AGENT_DEFAULT_FS=file://"+j.store)
	j.submit("--app-type", "tensorflow", "--worker-memory", "64", "--worker-num", "1", "--input", "/tmp/data/in#data",
		"--cacheFile", "/tmp/data/dict#dict", "--output", "/tmp/out#model", "--board-enable", "true", "--board-logdir", "/tmp/logs",
		"--conf", "hbox.container.env.PATH="+filepath.Join(j.store, "bin")+":/usr/bin:/bin",
		"sh", "-c", "until [ -s $MUSTER_LOG_DIR/board ]; do sleep 0.1; done; cat data/words dict >model/m; grep logdir $MUSTER_LOG_DIR/board >model/board").succeeds(t)
	j.same(j.files(filepath.Join(j.store, "tmp", "out")),
		map[string]string{"worker-0/m": "w\nd\n", "worker-0/board": "--logdir=" + j.store + "/tmp/logs\n", "_SUCCESS": ""})
}

// A run that was killed and forgotten has left its half outputs: the app's next life begins with an empty place, and none of
// those become its own.
func TestForgottenOutputs(t *testing.T) {
	t.Parallel()
	command, _ := manyFiles(600)
	j := newJob(t, 1, settings{"muster.command": command, "muster.output.model": "out"})
	at := onDisk{j, filepath.Join(j.store, "out")}
	cmd := j.command(j.runArgs("--engine", "process")...)
	end := j.begin(cmd)
	await(t, "some of the outputs", func() bool { return at.bytes() >= 100_000 })
	j.must(cmd.Process.Signal(syscall.SIGSTOP)) // it would launch another at once
	j.kill("worker-0")
	j.must(cmd.Process.Kill())
	end()
	before, err := os.ReadDir(filepath.Join(at.dir, "_temporary"))
	j.must(err)
	if _, said, code := j.verb("forget", j.app); code != 0 || len(before) != 1 {
		t.Fatalf("forget ended with %d, %s; in _temporary was %v", code, said, before)
	}
	j.define(1, settings{"muster.command": "echo new > model/m", "muster.output.model": "out"})
	j.run("--engine", "process").succeeds(t)
	j.same(at.files(), map[string]string{"_SUCCESS": "", "worker-0/m": "new\n"})
	if _, err := os.Stat(filepath.Join(at.dir, "_temporary")); err == nil {
		t.Error("what the forgotten run had left half is still there")
	}
}

// Two apps with one place: the one that comes later is told when it starts, not first when its work is done.
func TestTwoAppsWithOneOutput(t *testing.T) {
	t.Parallel()
	first := newJob(t, 1, settings{"muster.command": "touch ready; until [ -e go ]; do sleep 0.05; done; echo 1 > model/m", "muster.output.model": "out"})
	second := newJob(t, 1, settings{"muster.command": "touch ready; until [ -e go ]; do sleep 0.05; done; echo 2 > model/m", "muster.output.model": "out"})
	second.store = first.store
	args := []string{"--engine", "process"}
	if os.Geteuid() == 0 { // two apps write to one folder as one user: else each has ids of its own
		args = append(args, "--set", "worker:muster.user=nobody")
	}
	end := first.begin(first.command(first.runArgs(args...)...))
	first.runs("worker-0/ready")
	other := second.begin(second.command(second.runArgs(args...)...))
	second.runs("worker-0/ready")
	out, said, code := second.verb("status", second.app)
	if want := "output model: app " + first.app + " has outputs under way at "; code != 0 || !strings.Contains(out, want) || !strings.Contains(out, "name another place") {
		t.Errorf("status ended with %d, %s\n%s\nwant a warning with %q", code, said, out, want)
	}
	first.must(os.WriteFile(filepath.Join(first.work, "worker-0", "go"), nil, 0o600))
	end().succeeds(t)
	second.must(os.WriteFile(filepath.Join(second.work, "worker-0", "go"), nil, 0o600))
	e := other()
	if e.code != 69 || !strings.Contains(e.said, "muster: warning: output model: app "+first.app) {
		t.Errorf("the second ended with %d, want 69 and the warning:\n%s", e.code, e.said)
	}
	for name, text := range (onDisk{first, filepath.Join(first.store, "out")}).files() {
		want, kept := map[string]string{"_SUCCESS": "", "worker-0/m": "1\n"}[name], strings.HasPrefix(name, "_temporary/"+second.app+"@")
		if kept {
			want = "2\n" // it loses nothing either
		}
		if text != want {
			t.Errorf("%s: got %q, want %q", name, text, want)
		}
	}
}
