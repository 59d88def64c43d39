package confine_test

import (
	"strings"
	"testing"

	"github.com/muster-agent/muster/tests/need"
)

// A program beside the app is where the app is: namespaces, cgroup, user and name of the machine.
func TestExec(t *testing.T) {
	need.Root(t)
	for _, user := range []string{"", "nobody"} {
		for _, engine := range engines() {
			t.Run(engine+"/"+user, func(t *testing.T) {
				t.Parallel()
				beside(t, engine, user)
			})
		}
	}
}

// beside asserts it of an app that runs as root, with ids of its own, or as a user of the host.
func beside(t *testing.T, engine, user string) {
	t.Helper()
	const where = `echo host $(hostname); for n in mnt pid ipc uts user; do echo $n $(readlink /proc/self/ns/$n); done; echo cgroup $(sort /proc/self/cgroup | tr '\n' ' '); id -u`
	command, uid := `mkfifo hold; (`+where+`) >inside; echo here; cat hold`, "0"
	j := newJob(t, command, nil).anyUser()
	if user != "" {
		uid = "65534"
		j.define(command, settings{"muster.user": user})
	}
	p := j.begin("--engine", engine)
	j.says("here")
	out, said, code := j.verb("exec", j.app+"/worker-0", "--", "sh", "-c", where)
	if code != 0 || out != read(j.own("inside")) || !strings.HasSuffix(out, uid+"\n") {
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
}
