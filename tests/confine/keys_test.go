package confine_test

import (
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/tests/need"
)

// Keys of a definition whose effect is seen from outside, in every engine that has it.
func TestKeys(t *testing.T) {
	need.Root(t)
	for name, key := range map[string]struct {
		engines []string
		acts    func(t *testing.T, engine string)
	}{
		"muster.stop.signal":     {engines(), stopSignal},
		"muster.duration":        {engines(), duration},
		"muster.stage.timeout":   {engines(), stageTimeout},
		"muster.memory.swap":     {engines()[:2], swap},
		"muster.env.inherit":     {engines(), envInherit},
		"muster.tensorflow.args": {engines(), tensorFlowArgs},
		"muster.hold":            {engines(), hold},
	} {
		for _, engine := range key.engines {
			t.Run(name+"/"+engine, func(t *testing.T) {
				t.Parallel()
				key.acts(t, engine)
			})
		}
	}
}

// stopSignal: the process is asked to end by the signal that the definition names, not by TERM.
func stopSignal(t *testing.T, engine string) {
	const program = `trap 'echo got USR1; exit 0' USR1; trap 'echo got TERM; exit 0' TERM; mkfifo hold; echo here; while :; do read x <>hold; done`
	j := newJob(t, program, settings{"muster.stop.signal": "USR1", "muster.stop.grace": "30"})
	p := j.begin("--engine", engine)
	j.says("here")
	j.must(p.Signal(syscall.SIGINT))
	if e := j.end(p); e.Outcome != "stopped" || e.code != 130 {
		t.Errorf("%s, exit code %d, want stopped, 130", e.Outcome, e.code)
	}
	has(t, j.log("stdout.log"), settings{"got": "USR1"})
}

// duration: a process that runs longer is ended, and the verdict names the key.
func duration(t *testing.T, engine string) {
	j := newJob(t, "mkfifo hold; echo here; cat hold", settings{"muster.duration": "0.5s"})
	j.run("--engine", engine).fails(t, registry.ClassTimeout, 76, "still running after 500ms (muster.duration)")
	has(t, j.log("stdout.log"), settings{"here": ""})
}

// stageTimeout: an input whose server takes the question and never answers.
func stageTimeout(t *testing.T, engine string) {
	mute, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = mute.Close() })
	j := newJob(t, "echo here", settings{
		"muster.input.train": "hdfs://" + mute.Addr().String() + "/data", "muster.stage.timeout": "0.5s",
	})
	j.run("--engine", engine).fails(t, registry.ClassTimeout, 76, "muster.stage.timeout")
	if out := j.log("stdout.log"); out != "" {
		t.Errorf("the process ran: %q", out)
	}
}

// swap: what the kernel holds the process to, beside the memory; without the key there is none.
func swap(t *testing.T, engine string) {
	for _, c := range []struct{ key, want string }{{"", "67108864"}, {"32", "100663296"}} {
		more := settings{}
		if c.key != "" {
			more["muster.memory.swap"] = c.key
		}
		j := newJob(t, "mkfifo hold; echo here; cat hold", more)
		p := j.begin("--engine", engine)
		j.says("here")
		const both = "memory.memsw.limit_in_bytes" // of memory and swap together, by cgroup v1
		found := j.cgroupFile(both)
		if found != c.want {
			t.Errorf("muster.memory.swap %q: %s is %q, want %s", c.key, both, found, c.want)
		}
		j.release()
		if code := p.wait(); code != 0 {
			t.Errorf("exit code %d, want 0", code)
		}
	}
}

// envInherit: of the agent's variables a process gets those of the list, or with the key HBox's alone.
func envInherit(t *testing.T, engine string) {
	for _, c := range []struct{ key, want string }{{"", "<1> <>"}, {"hbox", "<> <>"}} {
		more := settings{}
		if c.key != "" {
			more["muster.env.inherit"] = c.key
		}
		j := newJob(t, `echo has "<$NCCL_DEBUG_OF_TEST>" "<$OWN_OF_TEST>"`, more)
		j.env = append(j.env, "NCCL_DEBUG_OF_TEST=1", "OWN_OF_TEST=1")
		has(t, j.succeeds("--engine", engine), settings{"has": c.want})
	}
}

// tensorFlowArgs: the words of the key are the built-in command's arguments, all of them.
func tensorFlowArgs(t *testing.T, engine string) {
	j := newJob(t, "", settings{
		"muster.framework": "tensorflow", "muster.start": "builtin", "muster.python": "python3",
		"site.global.user.scripts.entry": "args.py", "muster.tensorflow.args": "--epochs 3 '--name=a b'",
	})
	j.change("metainfo.json", func(file object) {
		app := file["application"].(object)
		app["packages"] = []any{object{"type": "folder", "name": "files"}}
		worker := app["components"].([]any)[0].(object)
		worker["commandScript"] = object{"script": "scripts/tensorflow.py", "scriptType": "PYTHON"}
	})
	j.must(os.WriteFile(filepath.Join(j.dir, "package", "files", "args.py"), []byte("import sys\nprint('args', sys.argv[1:])\n"), 0o644))
	has(t, j.succeeds("--engine", engine), settings{"args": "['--epochs', '3', '--name=a b']"})
}

// hold: the container of a failed process is there to look into until it is released; then the failure counts.
func hold(t *testing.T, engine string) {
	j := newJob(t, "echo behind >left; exit 3", settings{"muster.hold": "1h"})
	p := j.begin("--engine", engine)
	j.sees("holding")
	if out, said, code := j.verb("exec", j.app+"/worker-0", "--", "cat", "left"); out != "behind\n" || code != 0 {
		t.Errorf("exec: %q, exit code %d: %s", out, code, said)
	}
	if _, said, code := j.verb("hold", j.app+"/worker-0", "--release"); code != 0 {
		t.Errorf("release: exit code %d: %s", code, said)
	}
	j.end(p).fails(t, registry.ClassApp, 3, "worker-0 exited with 3")
}
