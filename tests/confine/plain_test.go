package confine_test

import (
	"strings"
	"syscall"
	"testing"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/tests/need"
)

// What an ordinary user has on a host that gives nothing: the process engine with all of its promises, and a name for
// each limit that it does not hold.
func TestPlainUser(t *testing.T) {
	need.Root(t) // to become one
	for name, story := range map[string]func(t *testing.T){
		"auto": func(t *testing.T) {
			p := jobOf(t, plainUser(), "true", nil).plan()
			if p.Engine.Name != "process" || !strings.Contains(p.Engine.Why, "no cgroup: ") {
				t.Errorf("engine %q, because of %q, want process for want of a cgroup", p.Engine.Name, p.Engine.Why)
			}
		},
		"memory": func(t *testing.T) {
			j := jobOf(t, plainUser(), "mkfifo hold && "+program("hog", "120"), nil)
			e := j.run()
			e.fails(t, registry.ClassOOM, 128+int(syscall.SIGKILL), "limit of 64 MB", "(watchdog)")
		},
		"unenforced": func(t *testing.T) {
			want := []string{"cpu_hard", "pids", "shm_mb", "vcores"}
			j := jobOf(t, plainUser(), "mkfifo hold; echo here; cat hold", settings{"muster.pids": "40", "muster.cpu.hard": "true", "muster.shm": "8"})
			j.names(want, "auto")
			j.app += "r"
			e := j.run("--require-limits")
			e.fails(t, registry.ClassNotPermitted, 77, append([]string{"--require-limits: engine process does not enforce"}, want...)...)
		},
		"an image": func(t *testing.T) {
			j := jobOf(t, plainUser(), "true", settings{"muster.image": "oci:/nowhere"})
			e := j.run("--engine", "process")
			e.fails(t, registry.ClassNotPermitted, 77, "engine process", "engine container")
		},
		"exit codes": func(t *testing.T) {
			jobOf(t, plainUser(), "exit 7", nil).run().fails(t, registry.ClassApp, 7)
		},
		"tree": func(t *testing.T) {
			j := jobOf(t, plainUser(), program("tree", "50"), settings{"muster.stop.grace": "1"})
			p := j.begin()
			j.says("ready")
			was := j.remains()
			if _, said, code := j.verb("stop", j.app); code != 0 {
				t.Errorf("muster stop: %d: %s", code, said)
			}
			if e := j.end(p); e.Outcome != "stopped" || e.code != 0 {
				t.Errorf("%s, exit code %d, want stopped, 0", e.Outcome, e.code)
			}
			j.nothingLeft(was)
		},
		"zombies": func(t *testing.T) {
			has(t, jobOf(t, plainUser(), program("orphans", "100"), nil).succeeds(), map[string]string{"orphans": "100", "zombies": "0"})
		},
		"no cgroup": func(t *testing.T) {
			j := jobOf(t, plainUser(), "true", nil)
			if _, said, code := j.verb("run", j.dir, "--app-id", j.app, "--work-dir", j.work, "--engine", "cgroup"); code != 77 || !strings.Contains(said, "--engine cgroup: this host does not permit it: ") {
				t.Errorf("--engine cgroup ended with %d: %s; want 77 and why", code, said)
			}
		},
		// its memory is watched there as well
		"hog in a container": func(t *testing.T) {
			e := jobOf(t, plainUser(), "mkfifo hold && "+program("hog", "120"), nil).run("--engine", "container")
			e.fails(t, registry.ClassOOM, 128+int(syscall.SIGKILL), "limit of 64 MB", "(watchdog)")
		},
		// namespaces of its own it may have; who insists on them is told what nobody holds
		"container": func(t *testing.T) {
			j := jobOf(t, plainUser(), "mkfifo hold; echo host $(hostname) >where; echo here; cat hold", settings{"muster.pids": "40"})
			j.names([]string{"pids", "vcores"}, "container")
			if got := read(j.own("where")); got != "host worker-0\n" {
				t.Errorf("the process found %q, want a container's name", got)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			story(t)
		})
	}
}
