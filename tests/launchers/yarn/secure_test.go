package yarn_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/muster-agent/muster/tests/need"
	"github.com/muster-agent/muster/tests/servers/hadoop"
)

// Behind a KDC the submitting user's ticket is all that there is: YARN gets tokens by it for the containers, and agents
// that have neither keytab nor ticket use these.
func TestSecureYARN(t *testing.T) {
	need.Root(t)
	c := hadoop.Start(t, hadoop.Options{Kerberos: true})
	l := labOn(t, c, hadoop.YARNOptions{NodeManagers: 1, Site: map[string]string{
		"yarn.log-aggregation-enable": "false", // a NodeManager wants Hadoop's native library for it, and ends without
	}})
	// each process has a copy of the tokens: the number of steps is what it makes of the file's beginning
	steps := `$(grep -l . $HADOOP_TOKEN_FILE_LOCATION | grep -q app/run/ && head -c 4 $HADOOP_TOKEN_FILE_LOCATION | sed s/HDTS/30/)`
	j := l.submit("service", "secure", l.keeping(lasting(steps)...)...)
	j.ends("SUCCEEDED")
	l.submit("shell", "secure-shell", l.keeping(lasting(steps)...)...).ends("SUCCEEDED")
	kept := strings.TrimPrefix(l.dir, c.URI) + "/kept"
	if listed := c.FsShell(t, "-ls", "-R", kept); !strings.Contains(listed, " nobody ") || strings.Contains(listed, " yarn ") {
		t.Errorf("checkpoints:\n%s", listed)
	}
	audit, err := os.ReadFile(filepath.Join(c.Dir, "logs", "namenode-0.log"))
	if err != nil {
		t.Fatal(err)
	}
	for what, marks := range map[string][]string{
		"checkpoint is written by a token": {"ugi=nobody (auth:TOKEN)", "cmd=create", "src=" + kept},
		"token is renewed by YARN":         {"ugi=yarn/localhost@LAB (auth:KERBEROS)", "cmd=renewDelegationToken"},
	} {
		if !slices.ContainsFunc(strings.Split(string(audit), "\n"), func(line string) bool {
			return !slices.ContainsFunc(marks, func(mark string) bool { return !strings.Contains(line, mark) })
		}) {
			t.Errorf("no %s", what)
		}
	}
	for _, path := range j.logs("worker-0", "stdout.log") {
		t.Logf("%s", l.read(path))
	}
}
