package submit_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/muster-agent/muster/tests/folder"
	"github.com/muster-agent/muster/tests/servers/consulserver"
	"github.com/muster-agent/muster/tests/servers/slurm"
	"github.com/muster-agent/muster/tests/servers/tinygang"
)

// Whoever waits leaves, and the job goes on; whoever is to stop it with Ctrl-C stops it in grace, and takes away what was brought.
func TestSlurm(t *testing.T) {
	c := slurm.Start(t, slurm.Options{})
	consul := consulserver.Start(t, consulserver.Options{})
	dir := folder.Temp(t, "su-")
	gang := tinygang.Write(t, dir, 2, nil)
	store := filepath.Join(dir, "store")
	env := append(c.Environ(), "PATH="+c.Bin()+":"+os.Getenv("PATH"), "CONSUL_HTTP_ADDR="+consul.HTTPAddr, "MUSTER_AGENT_STATE_DIR="+filepath.Join(c.Dir, "s"))
	words := []string{"submit", "slurm", gang.App, "--app-id", "tiny", "--store", store, "--engine", "process", "--work-dir", filepath.Join(dir, "w"), "--set", "ps:yarn.memory=64"}

	one := submitIn(t, c.Dir, env, append(words, "--wait", "--run", "r1")...)
	one.says("running: 3 instances, generation 1")
	if err := one.cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if code := one.ends(); code != 130 || !strings.Contains(one.err.String(), "stop it:   muster stop tiny --registry ") {
		t.Errorf("Ctrl-C: got %d, want 130 and how to stop it\n%s", code, one.err.String())
	}
	if got := strings.Join(left(t, store), " "); !strings.Contains(got, "-muster") || !strings.Contains(got, "tiny@r1/run.json") {
		t.Errorf("left are %q while the job runs", got)
	}
	id := strings.TrimSpace(one.out.String())
	if state := c.Job(id).State; state != "RUNNING" {
		t.Errorf("job %q is %s, want it to run on", id, state)
	}
	follow := submitIn(t, dir, env, "status", "tiny", "--wait", "--registry", "consul://"+consul.HTTPAddr)
	follow.says("running: 3 instances")
	gang.Go(t, 0)
	if code := follow.ends(); code != 0 || !strings.Contains(follow.out.String(), "tiny (tinygang): done") {
		t.Errorf("status --wait: got %d\n%s%s", code, follow.out.String(), follow.err.String())
	}
	c.AwaitState(id, "COMPLETED")

	if err := os.Remove(filepath.Join(gang.Dir, "go")); err != nil {
		t.Fatal(err)
	}
	two := submitIn(t, c.Dir, env, append(words, "--wait", "--kill-on-interrupt", "--run", "r2")...)
	two.says("running: 3 instances, generation")
	if err := two.cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if code := two.ends(); code != 130 || !strings.Contains(two.out.String(), "tiny: stopped") {
		t.Errorf("stopped by Ctrl-C: got %d, want 130 and the verdict\n%s%s", code, two.out.String(), two.err.String())
	}
	if got := strings.Join(left(t, store), " "); strings.Contains(got, "tiny@r2/") {
		t.Errorf("left are %q, want nothing of a run that is over", got)
	}

	// One line in place of a package: it is packed, brought and run like any other.
	said := folder.OfAll(t, filepath.Join(dir, "said"))
	if err := os.WriteFile(filepath.Join(dir, "who.sh"), []byte(`echo "$2" >"$1/$MUSTER_INSTANCE"`), 0o644); err != nil {
		t.Fatal(err)
	}
	line := []string{"submit", "slurm", "-n", "2", "--memory", "64", "--app-id", "line", "--store", store, "--engine", "process", "--work-dir", filepath.Join(dir, "wl")}
	three := submitIn(t, dir, env, append(line, "--wait", "--", "sh", "who.sh", said, "a b")...)
	if code := three.ends(); code != 0 || !strings.Contains(three.out.String(), "line: succeeded") {
		t.Errorf("a line: got %d\n%s%s", code, three.out.String(), three.err.String())
	}
	for _, instance := range []string{"worker-0", "worker-1"} {
		if text, err := os.ReadFile(filepath.Join(said, instance)); err != nil || string(text) != "a b\n" {
			t.Errorf("%s said %q, %v", instance, text, err)
		}
	}
}
