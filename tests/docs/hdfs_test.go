package docs_test

import (
	"testing"

	"github.com/muster-agent/muster/tests/servers/hadoop"
)

// TestHDFSGuide does what the guide of HDFS says, on a real one.
func TestHDFSGuide(t *testing.T) {
	const name = "doc/hdfs.md"
	c := hadoop.Start(t, hadoop.Options{})
	c.FsShell(t, "-mkdir", "-p", "/user/ada")
	c.FsShell(t, "-chown", "ada", "/user/ada")
	t.Setenv("HADOOP_CONF_DIR", c.ConfDir)
	t.Setenv("HADOOP_USER_NAME", "ada")
	d := newDesk(t)
	defer stopAll(d)
	typed := 0
	for _, s := range steps(read(t, name)) {
		if s.file != "" {
			d.write(s.file, s.text)
			continue
		}
		follows(t, d, name, "", s.typed)
		typed++
	}
	if got := c.FsShell(t, "-stat", "%u %a", "/user/ada/made"); got != "ada 750\n" {
		t.Errorf("the folder that a script wanted is %q", got)
	}
	if typed < 5 {
		t.Errorf("only %d lines", typed)
	}
}
