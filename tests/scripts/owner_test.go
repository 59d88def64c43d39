package scripts_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/tests/folder"
	"github.com/muster-agent/muster/tests/need"
)

// shellJob is a job of one component whose commands are a shell's. P is the pid file that is looked for.
func shellJob(t testing.TB, start, status string, config settings) *job {
	t.Helper()
	const pid = "P=$AGENT_WORK_ROOT/app/run/component.pid; export P; "
	commands := []command{{"START", pid + start}, {"STOP", "echo x >>stopped"}}
	if status != "" {
		commands = append(commands, command{"STATUS", pid + status})
	}
	return newSmall(t, nil, small{parts: []part{{commands: commands}}, config: config})
}

// cell is one START with one pid file, and what becomes of it for STATUS yes, no and none: "up" is stopped by the test, "" is
// not driven.
type cell struct {
	start, file string
	script      string
	wants       [3]string
}

// The words of what becomes of an instance, as the result of the run has them.
const (
	noProcess = "worker-0 failed: START ended with 0 and left no process, and STATUS failed 2 times: no answer; where START is the program itself, set muster.up=start"
	noPIDFile = "worker-0 failed: START ended with 0 and left no process: process 1 of *component.pid is gone, or START did not start it"
	deniedPID = "worker-0 was killed by SIGKILL: STATUS failed 2 times: no answer"
	denied    = "worker-0 failed: STATUS failed 2 times: no answer; START ended with 0 and left processes that no pid file names: let pid_file name *"
	exited    = "worker-0 exited with 3"
	rested    = exited + startedSo

	// startedSo ends the cause of an end that no pid file named.
	startedSo = ": a process that START had started ended so; where that was a helper, let pid_file name *"
)

// What START leaves lives until START is over and the file die is there, and then exits with 3. It writes its pid when
// the test has made the file late.
const (
	untilDie = `echo $$ >daemon; until [ -e die ] && ! kill -0 $S; do sleep 0.1; done; exit 3`
	onDie    = `S=$$ sh -c '` + untilDie + `' & `
	lateName = `S=$$ sh -c 'until [ -e late ]; do sleep 0.1; done; echo $$ >$P; ` + untilDie + `' & `
	endsWell = `S=$$ sh -c 'while kill -0 $S; do sleep 0.1; done; sleep 1; : >over' &`
	// orphaned has a process go on when its first parent, a shell that would see it end, is gone.
	orphaned = `until [ -e orphan ]; do sleep 0.1; done; `
	// serves ends when STATUS has been asked twice: the first answer counts by then.
	serves = `: >running; until [ -e again ] || [ ! -e asks ]; do sleep 0.1; done; rm running`
)

// cells are the matrix of shim/script with a package for each cell. Where START leaves nothing only STATUS can write a
// late pid file.
var cells = []cell{
	{"stays", "right", "echo $$ >$P; " + serves, [3]string{"0", "0", "0"}},
	{"stays", "elsewhere", "echo $$ >here.pid; " + serves, [3]string{"0", noProcess, "0"}},
	{"stays", "late", serves, [3]string{"0", noProcess, "0"}},
	{"stays", "wrong", "echo 1 >$P; " + serves, [3]string{"0", noPIDFile, noPIDFile}},
	{"stays", "none", serves, [3]string{"0", noProcess, "0"}},

	{"leaves", "right", onDie + "echo $! >$P", [3]string{"up", deniedPID, "up"}},
	{"leaves", "elsewhere", onDie + "echo $! >here.pid", [3]string{"up", denied, "up"}},
	{"leaves", "late", lateName, [3]string{"up", deniedPID, "up"}},
	{"leaves", "wrong", onDie + "echo 1 >$P", [3]string{"up", denied, "up"}},
	{"leaves", "none", onDie, [3]string{"up", denied, "up"}},

	{"nothing", "right", `(sh -c '` + orphaned + `echo $$ >$P; exit 3' &); : >orphan; until [ -s $P ] && ! kill -0 $(cat $P); do sleep 0.1; done`, [3]string{"up", exited, exited}},
	{"nothing", "elsewhere", "echo 17 >here.pid", [3]string{"up", noProcess, "0"}},
	{"nothing", "late", "true", [3]string{"up", noProcess, "0"}},
	{"nothing", "wrong", "echo 1 >$P", [3]string{"up", noPIDFile, noPIDFile}},
	{"nothing", "none", "true", [3]string{"up", noProcess, "0"}},

	{"fails late", "right", onDie + "echo $! >$P", [3]string{exited, exited, exited}},
	{"fails late", "elsewhere", onDie + "echo $! >here.pid", [3]string{rested, rested, rested}},
	{"fails late", "late", lateName, [3]string{exited, exited, exited}},
	{"fails late", "wrong", onDie + "echo 1 >$P", [3]string{rested, rested, rested}},
	{"fails late", "none", onDie, [3]string{rested, rested, rested}},

	{"ends well", "wrong", "echo 1 >$P; " + endsWell, [3]string{"up", "", "0"}},
	{"ends well", "none", endsWell, [3]string{"up", "", "0"}},
}

// Every START has an owner: no instance succeeds but by a program that has ended well, and none is up without a process
// or a STATUS that says so. The process engine has all cells, the others those where their guards have something to say.
func TestOwner(t *testing.T) {
	drive(t, func(c cell, status, engine string) bool {
		usual := slices.Contains([]string{"right", "none"}, c.file)
		return engine == "process" || c.lives() && (status == "none" || usual) ||
			c.start == "nothing" && status == "none" && (c.file == "wrong" || usual) ||
			c.start == "nothing" && status == "yes" && c.file == "none" // STOP runs where no process is
	})
}

// drive tries the cells that are wanted, with each engine.
func drive(t *testing.T, wanted func(c cell, status, engine string) bool) {
	t.Helper()
	for _, c := range cells {
		for i, status := range []string{"yes", "no", "none"} {
			for _, engine := range engines {
				if c.wants[i] != "" && wanted(c, status, engine) {
					t.Run(strings.Join([]string{c.start, c.file, status, engine}, "/"), func(t *testing.T) {
						if engine != "process" {
							need.Root(t)
						}
						t.Parallel()
						c.comes(t, status, engine, c.wants[i])
					})
				}
			}
		}
	}
}

// lives tells that START leaves a process that lives.
func (c cell) lives() bool { return c.start == "leaves" || c.start == "fails late" }

// answer is what STATUS does to say yes or no.
func (c cell) answer(status string) string {
	const says, named, no = "grep -q 'STATUS alone says' $AGENT_LOG_ROOT/agent.log",
		"grep -q 'has left the process behind' $AGENT_LOG_ROOT/agent.log", "echo no answer >&2; false"
	var first string
	switch {
	case c.file == "late" && !c.lives():
		first = says + " && echo 1 >$P; "
	case c.file == "late" && status == "no": // else it says no twice before the pid file is there
		first = named + " || exit 0; "
	}
	switch {
	case status == "none":
		return ""
	case c.start == "stays" && status == "yes": // STATUS knows the program while it runs
		return first + "[ -e running ] || exit 1; [ ! -e asked ] || : >again; : >asked"
	case status == "yes":
		return first + "true"
	case c.start == "fails late": // it has failed before STATUS says so
		return first + ": >die; while [ -d /proc/$(cat daemon) ]; do sleep 0.1; done; " + no
	}
	return first + no
}

// comes drives one cell to what should become of it.
func (c cell) comes(t *testing.T, status, engine, want string) {
	start := c.script
	if c.start == "stays" && status == "yes" {
		start = ": >asks; " + start
	}
	j := shellJob(t, start, c.answer(status), nil)
	p := j.begin("--engine", engine)
	if c.lives() && (status != "no" || c.file == "late") { // else STATUS may be quicker than this test
		c.owned(j)
	}
	if want == "up" {
		if !c.lives() {
			j.notes("worker-0", "STATUS alone says")
		}
		j.sees("worker-0", "running", 1)
		j.stop(p)
		if got := read(j.own("worker-0", "stopped")); got != "x\n" {
			t.Errorf("STOP ran %q times", got)
		}
		j.nothingLeft()
		return
	}
	if c.start == "fails late" && status != "no" {
		j.must(os.WriteFile(j.own("worker-0", "die"), nil, 0o644))
	}
	e := j.end(p)
	switch want {
	case "0":
		e.succeeds(t)
		if c.start == "stays" && status == "yes" {
			j.notes("worker-0", "set muster.up=status") // it may have been a service
		}
	case exited, rested:
		e.fails(t, registry.ClassApp, 3, want)
	case deniedPID:
		e.fails(t, registry.ClassApp, 137, want)
	default:
		e.fails(t, registry.ClassApp, 1, want)
	}
	j.nothingLeft()
}

// owned waits until the agent has said what the instance is.
func (c cell) owned(j *job) {
	if c.file != "right" {
		j.notes("worker-0", "they are the instance")
	}
	if c.file == "late" {
		j.must(os.WriteFile(j.own("worker-0", "late"), nil, 0o644))
	}
	if c.file == "right" || c.file == "late" {
		j.notes("worker-0", "START has left the process behind")
	}
}

// Daemons that make it hard to say what they are: without a pid file, and without a STATUS that could help.
func TestDaemons(t *testing.T) {
	const forks = `fork() { (setsid sh -c "$1" &); }; ` // twice, with a session of its own
	for name, c := range map[string]struct {
		start  string
		config settings
		code   int
		cause  string // empty: it succeeds
	}{
		"dies 1 s after START, double-forked":         {forks + `fork 'sleep 1; exit 5'`, nil, 5, "worker-0 exited with 5"},
		"dies 1 s after START, put to START's shell":  {`sh -c 'sleep 1; exit 5' &`, nil, 5, "worker-0 exited with 5"},
		"dies before START has ended":                 {forks + `fork '` + orphaned + `: >up; exit 6'; : >orphan; until [ -e up ]; do sleep 0.1; done; sleep 0.5`, nil, 6, "worker-0 exited with 6"},
		"dies before START has ended, not waited for": {`S=$$ sh -c 'until [ "$(cat /proc/$S/comm)" = sleep ]; do sleep 0.1; done; exit 6' & exec sleep 1`, nil, 6, "worker-0 exited with 6"},
		"dies before START has ended, waited for":     {`sh -c 'exit 6' & wait $!; true`, nil, 0, ""}, // START knows, and says 0
		"a helper that START ends":                    {`tail -f /dev/null & T=$!; sleep 0.3; kill $T; exit 0`, nil, 0, ""},
		"a helper that detached itself, and is ended": {forks + `fork 'echo $$ >one; exec sleep 1000'; until [ -s one ]; do sleep 0.1; done; kill $(cat one); while kill -0 $(cat one); do sleep 0.1; done`, nil, 0, ""},
		"a helper is ended, and a daemon has failed":  {forks + `fork 'echo $$ >one; exec sleep 1000'; until [ -s one ]; do sleep 0.1; done; kill $(cat one); while kill -0 $(cat one); do sleep 0.1; done; fork 'echo $$ >two; sleep 0.5; exit 6'; until [ -s two ]; do sleep 0.1; done; while kill -0 $(cat two); do sleep 0.1; done`, nil, 6, "worker-0 exited with 6"},
		"is killed by a signal":                       {forks + `fork '` + orphaned + `kill -SEGV $$'; : >orphan`, nil, 139, "worker-0 was killed by SIGSEGV"},
		"ends well":                                   {forks + `fork 'sleep 0.5; exit 0'`, nil, 0, ""},
		"one of several fails, and it is a failure":   {forks + `fork 'echo $$ >one; sleep 1; exit 7'; fork 'until [ -s one ] && ! kill -0 $(cat one); do sleep 0.1; done; exit 0'`, nil, 7, "worker-0 exited with 7"},
		"the first that fails decides":                {forks + `fork 'echo $$ >one; sleep 1; exit 7'; fork 'until [ -s one ] && ! kill -0 $(cat one); do sleep 0.1; done; exit 8'`, nil, 7, "worker-0 exited with 7"},
		"one of several ends well, another goes on":   {forks + `fork 'echo $$ >one; exit 0'; fork 'until [ -s one ] && ! kill -0 $(cat one); do sleep 0.1; done; exit 7'`, nil, 7, "worker-0 exited with 7"},
		"a helper outlives the program":               {forks + `fork 'sleep 1000'`, settings{"muster.up": "start"}, 0, ""},
		"nothing is left, and one was promised":       {`true`, settings{"muster.up": "process"}, 1, "worker-0 failed: START ended with 0 and left no process, which muster.up=process wants: *"},
		"START fails, and what it left is ended":      {forks + `fork 'sleep 1000'; exit 4`, nil, 4, "worker-0 exited with 4"},
	} {
		for _, engine := range engines {
			t.Run(name+"/"+engine, func(t *testing.T) {
				if engine != "process" {
					need.Root(t)
				}
				t.Parallel()
				j := shellJob(t, c.start, "", c.config)
				e := j.run("--engine", engine)
				switch {
				case c.cause == "":
					e.succeeds(t)
				case c.code == 1 || c.code == 4: // START itself, or the cause says all
					e.fails(t, registry.ClassApp, c.code, c.cause)
				default:
					e.fails(t, registry.ClassApp, c.code, c.cause+startedSo)
				}
				j.nothingLeft()
			})
		}
	}
}

// A supervisor may put another daemon in the place of the one that its pid file names: the instance lives on with it.
func TestSupervisor(t *testing.T) {
	need.Root(t)
	for _, engine := range engines {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			j := shellJob(t, `cat >keep.sh <<'X'
until [ -e enough ]; do sleep 1000 & echo $! >$P; wait $!; done
exit 8
X
setsid sh keep.sh & until [ -s $P ]; do sleep 0.1; done`, `kill -0 $(cat $P)`, settings{"muster.status.interval": "60"})
			p := j.begin("--engine", engine)
			j.notes("worker-0", "START has left the process behind")
			first := j.daemon("worker-0", "sleep 1000")
			j.must(syscall.Kill(first, syscall.SIGKILL))
			gone(t, first)
			await(t, "another daemon", func() bool { return j.daemon("worker-0", "sleep 1000") != first })
			if found := j.events("worker-0"); slices.ContainsFunc(found, func(e event) bool { return e.From == "running" }) {
				t.Errorf("the instance has ended with its first daemon: %+v", found)
			}
			j.must(os.WriteFile(j.own("worker-0", "enough"), nil, 0o644))
			j.must(syscall.Kill(j.daemon("worker-0", "sleep 1000"), syscall.SIGKILL))
			j.end(p).fails(t, registry.ClassApp, 8, "worker-0 exited with 8"+startedSo)
			j.nothingLeft()
		})
	}
}

// A daemon's parent that says 0 whatever becomes of the daemon: the instance has ended as the daemon did, also where
// STATUS had said yes. Before Linux 6.15 the parent alone knows how that was, and the instance has failed.
func TestParentThatSaysZero(t *testing.T) {
	var host unix.Utsname
	if err := unix.Uname(&host); err != nil {
		t.Fatal(err)
	}
	var major, minor int
	if _, err := fmt.Sscanf(unix.ByteSliceToString(host.Release[:]), "%d.%d", &major, &minor); err != nil {
		t.Fatal(err)
	}
	seen := major > 6 || major == 6 && minor >= 15
	for name, status := range map[string]string{
		"no STATUS": "", "STATUS": "kill -0 $(cat $P) || exit 1; [ ! -e asked ] || : >again; : >asked", // the first answer counts by then
	} {
		for _, signal := range []syscall.Signal{syscall.SIGKILL, syscall.SIGUSR1} {
			for _, engine := range engines {
				t.Run(strings.Join([]string{name, signal.String(), engine}, "/"), func(t *testing.T) {
					if engine != "process" {
						need.Root(t)
					}
					t.Parallel()
					j := shellJob(t, `cat >daemon.sh <<'X'
trap 'exit 0' USR1; : >trapped; while :; do sleep 0.1; done
X
cat >parent.sh <<'X'
sh daemon.sh & echo $! >$P; wait
X
setsid sh parent.sh & until [ -s $P ] && [ -e trapped ]; do sleep 0.1; done`, status, settings{"muster.status.interval": "0.5"})
					p := j.begin("--engine", engine)
					j.notes("worker-0", "START has left the process behind")
					if status != "" {
						await(t, "two answers of STATUS", func() bool { return !absent(j.own("worker-0", "again")) })
					}
					j.must(syscall.Kill(j.daemon("worker-0", "daemon.sh"), signal))
					e := j.end(p)
					switch {
					case !seen:
						e.fails(t, registry.ClassApp, 1, "worker-0 failed: process * has ended, and its parent, which alone knows how, *")
					case signal == syscall.SIGKILL:
						e.fails(t, registry.ClassApp, 137, "worker-0 was killed by SIGKILL")
					default:
						e.succeeds(t)
					}
					j.nothingLeft()
				})
			}
		}
	}
}

// elsewhere is a job whose START runs something that is no child of it: a file in the folder that it returns, named by
// the instance. STATUS sees it, STOP removes it and notes so.
func elsewhere(t *testing.T, instances int, config settings) (j *job, dir string) {
	t.Helper()
	j = newSmall(t, nil, small{parts: []part{{instances: instances}}, config: config})
	dir = folder.OfAll(t, filepath.Join(j.home, "elsewhere"))
	again := newSmall(t, nil, small{parts: []part{{instances: instances, commands: []command{
		{"START", "echo x >>" + dir + "/started.$MUSTER_INSTANCE; : >" + dir + "/$MUSTER_INSTANCE"},
		{"STATUS", "[ -e " + dir + "/$MUSTER_INSTANCE ]"},
		{"STOP", "echo x >>" + dir + "/stopped.$MUSTER_INSTANCE; rm -f " + dir + "/$MUSTER_INSTANCE"},
	}}}, config: config})
	j.dir = again.dir
	return j, dir
}

// Where START leaves no process here, STATUS alone decides, and STOP ends what runs elsewhere: at a stop, when STATUS
// says no, at a flex and for a new generation.
func TestStatusAlone(t *testing.T) {
	t.Run("stop", func(t *testing.T) {
		t.Parallel()
		j, dir := elsewhere(t, 1, nil)
		p := j.begin("--engine", "process")
		j.notes("worker-0", "STATUS alone says")
		j.stop(p)
		if read(filepath.Join(dir, "stopped.worker-0")) != "x\n" || !absent(filepath.Join(dir, "worker-0")) {
			t.Error("STOP has not run, or not once")
		}
	})
	t.Run("STATUS says no", func(t *testing.T) {
		t.Parallel()
		j, dir := elsewhere(t, 1, settings{"muster.restart": "instance"})
		p := j.begin("--engine", "process")
		await(t, "the service", func() bool { return !absent(filepath.Join(dir, "worker-0")) })
		j.notes("worker-0", "STATUS alone says")
		j.must(os.Remove(filepath.Join(dir, "worker-0")))
		if cause := j.sees("worker-0", "backoff", 1).Cause; !strings.Contains(cause, "STATUS failed 2 times") {
			t.Errorf("started again because of %q", cause)
		}
		if read(filepath.Join(dir, "stopped.worker-0")) != "x\n" {
			t.Error("STOP has not run before the next START")
		}
		j.sees("worker-0", "running", 2)
		await(t, "the second START", func() bool { return read(filepath.Join(dir, "started.worker-0")) == "x\nx\n" })
		j.stop(p)
	})
	t.Run("flex", func(t *testing.T) {
		t.Parallel()
		j, dir := elsewhere(t, 2, settings{"muster.restart": "instance"})
		p := j.begin("--engine", "process")
		j.notes("worker-1", "STATUS alone says")
		j.does("flex", j.app, "worker=1")
		await(t, "STOP of worker-1", func() bool { return read(filepath.Join(dir, "stopped.worker-1")) == "x\n" })
		j.stop(p)
		if read(filepath.Join(dir, "stopped.worker-0")) == "" {
			t.Error("STOP of worker-0 has not run")
		}
	})
	t.Run("a new generation", func(t *testing.T) {
		t.Parallel()
		j, dir := elsewhere(t, 2, settings{"muster.restart": "gang"})
		p := j.begin("--engine", "process")
		for _, name := range []string{"worker-0", "worker-1"} {
			j.notes(name, "STATUS alone says")
		}
		j.must(os.Remove(filepath.Join(dir, "worker-1")))
		j.sees("worker-0", "running", 2)
		for _, name := range []string{"worker-0", "worker-1"} {
			if read(filepath.Join(dir, "stopped."+name)) != "x\n" {
				t.Errorf("STOP of %s has not run, or not once", name)
			}
		}
		j.stop(p)
	})
	t.Run("STATUS cannot be run any more", func(t *testing.T) { // else the instance would be nobody's
		t.Parallel()
		python := filepath.Join(folder.Temp(t, "ms-"), "python3")
		local, err := exec.LookPath("python3")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(local, python); err != nil {
			t.Fatal(err)
		}
		j := newSmall(t, nil, small{
			parts: []part{{timeout: 15, script: "    def start(self, env):\n        pass\n    def status(self, env):\n        import os\n" +
				"        open('again' if os.path.exists('asked') else 'asked', 'w')\n"}},
			config: settings{"muster.python": python, "muster.status.interval": "0.5"},
		})
		p := j.begin("--engine", "process")
		j.sees("worker-0", "running", 1)
		await(t, "two answers of STATUS", func() bool { return !absent(j.own("worker-0", "again")) }) // the first counts by then
		j.must(os.Remove(python))
		j.end(p).fails(t, registry.ClassTimeout, 76, "worker-0 failed: STATUS, which alone says whether the instance is up, cannot be run for 15 s: *")
	})
	t.Run("it is declared", func(t *testing.T) { // a process that START has left says nothing then
		t.Parallel()
		j := shellJob(t, ": >serves; sh -c 'until [ -e die ]; do sleep 0.1; done; exit 3' &", "[ -e serves ]", settings{"muster.up": "status"})
		p := j.begin("--engine", "process")
		j.notes("worker-0", "STATUS alone says")
		was := j.daemon("worker-0", "until [ -e die ]")
		j.must(os.WriteFile(j.own("worker-0", "die"), nil, 0o644))
		gone(t, was)
		j.must(os.Remove(j.own("worker-0", "serves")))
		j.end(p).fails(t, registry.ClassApp, 1, "worker-0 failed: STATUS failed 2 times: *")
		if read(j.own("worker-0", "stopped")) != "x\n" {
			t.Error("STOP has not run")
		}
	})
}
