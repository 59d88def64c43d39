package confine_test

import (
	"strings"
	"testing"

	"github.com/muster-agent/muster/tests/need"
)

// A program beside the app is where the app is: namespaces, cgroup, user and name of the machine.
func TestExec(t *testing.T) {
	need.Root(t)
	const where = `echo host $(hostname); for n in mnt pid ipc uts; do echo $n $(readlink /proc/self/ns/$n); done; echo cgroup $(sort /proc/self/cgroup | tr '\n' ' '); id -u`
	for _, engine := range engines() {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			j := newJob(t, `mkfifo hold; (`+where+`) >inside; echo here; cat hold`, settings{"muster.user": "nobody"}).anyUser()
			p := j.begin("--engine", engine)
			j.says("here")
			out, said, code := j.verb("exec", j.app+"/worker-0", "--", "sh", "-c", where)
			if code != 0 || out != read(j.own("inside")) || !strings.Contains(out, "65534\n") {
				t.Errorf("exec ended with %d (%s) and found\n%swhere the app found\n%s", code, said, out, read(j.own("inside")))
			}
			for command, want := range map[string]int{"exit 7": 7, "kill -SEGV $$": 139} {
				if _, said, code := j.verb("exec", j.app+"/worker-0", "--", "sh", "-c", command); code != want {
					t.Errorf("exec %s: %d (%s), want %d", command, code, said, want)
				}
			}
			j.release()
			if code := p.wait(); code != 0 {
				t.Errorf("exit code %d, want 0", code)
			}
		})
	}
}
