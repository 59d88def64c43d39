package hdfs_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/muster-agent/muster/tests/servers/hadoop"
)

// A run that has neither keytab nor ticket brings its inputs and keeps its checkpoints by a token file; by one whose token
// was taken back it says so, and what would do.
func TestRunByToken(t *testing.T) {
	t.Parallel()
	c := hadoop.Start(t, hadoop.Options{Kerberos: true})
	cache, file := filepath.Join(t.TempDir(), "cache"), filepath.Join(t.TempDir(), "tokens")
	c.KDC.AddUser(t, "tina")
	c.KDC.Kinit(t, cache, "tina")
	fetch := func(option ...string) {
		t.Helper()
		cmd := c.HDFS(append([]string{"org.apache.hadoop.hdfs.tools.DelegationTokenFetcher"}, option...)...)
		cmd.Args = append(cmd.Args, file)
		cmd.Env = append(cmd.Env, "KRB5CCNAME="+cache)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("fetchdt %q: %v\n%s", option, err, out)
		}
	}
	fetch("--renewer", "tina")
	run := func() *job {
		j := jobOn(t, c)
		j.env = []string{"HADOOP_TOKEN_FILE_LOCATION=" + file}
		j.start(30, "0", "muster.checkpoint.sync="+c.URI+j.dir+"/kept", "site.global.train.checkpoint.every=10")
		return j
	}
	j := run()
	j.succeeds()
	owned := 0
	for line := range strings.Lines(c.FsShell(t, "-ls", "-R", j.dir+"/kept")) {
		if words := strings.Fields(line); len(words) > 2 && words[2] == "tina" {
			owned++
		}
	}
	if owned == 0 {
		t.Error("no checkpoint of tina's")
	}
	fetch("--cancel")
	j = run()
	err := j.cmd.Wait()
	for _, want := range []string{"delegation token of tina@LAB in " + file + " is not taken", "write a new one over it"} {
		if err == nil || !strings.Contains(j.stderr.String(), want) {
			t.Errorf("got %v, want %s\n%s", err, want, j.stderr.Bytes())
		}
	}
}
