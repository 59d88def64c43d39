package submit_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/muster-agent/muster/tests/servers/consulserver"
	"github.com/muster-agent/muster/tests/servers/hadoop"
)

// A submission of HBox's as it is goes to HDFS and to YARN's service API, and its end takes away what it brought.
func TestYARN(t *testing.T) {
	c := hadoop.Shared(t)
	y := c.StartYARN(t, hadoop.YARNOptions{NodeManagers: 1})
	consul := consulserver.Start(t, consulserver.Options{})
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "train.sh"), []byte("echo 'reporter progress:0.5' >&2\nexit \"$1\"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	env := append(slices.Clone(y.Clients()), "CONSUL_HTTP_ADDR="+consul.HTTPAddr, "MUSTER_AGENT_STATE_DIR="+filepath.Join(dir, "s"))
	for _, one := range []struct {
		exit, outcome string
		code          int
	}{{"0", "succeeded", 0}, {"3", "failed (app-error)", 2}} {
		job := submit(t, env, "hbox-submit", "--launcher", "yarn", "--store", "hdfs:///user/nobody/muster", "--engine", "process",
			"--app-type", "PYTORCH", "--worker-num", "1", "--worker-memory", "64", "--queue", "default", "--files", filepath.Join(dir, "train.sh"),
			"sh", "train.sh", one.exit)
		if code := job.ends(); code != one.code {
			id, _, _ := strings.Cut(job.out.String(), "\n")
			t.Fatalf("exit %s: got %d, want %d\n%s%s%s", one.exit, code, one.code, job.out.String(), job.err.String(), y.Logs(id))
		}
		id, rest, _ := strings.Cut(job.out.String(), "\n")
		if !strings.HasPrefix(id, "application_") || !strings.Contains(rest, ": "+one.outcome) {
			t.Errorf("exit %s: got %q, want the application's id and %s", one.exit, job.out.String(), one.outcome)
		}
		y.AwaitEnd(id)
		for _, folder := range []string{"objects", "runs"} {
			if got := c.FsShell(t, "-ls", "-C", "/user/nobody/muster/"+folder); strings.TrimSpace(got) != "" {
				t.Errorf("exit %s: left in the store are %s", one.exit, got)
			}
		}
	}
}
