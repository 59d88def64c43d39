package data_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/muster-agent/muster/tests/servers/hadoop"
)

// arrow copies a file of HDFS, by libhdfs, and says which one it has loaded.
const arrow = `
import sys
from pyarrow import fs
store = fs.HadoopFileSystem("default")
with store.open_input_stream(sys.argv[1]) as f: text = f.read()
with store.open_output_stream(sys.argv[2]) as f: f.write(text * 2)
print([line.split()[-1] for line in open("/proc/self/maps") if line.rstrip().endswith("/libhdfs.so")][0])
`

// withArrow is a job whose process copies a file of HDFS by libhdfs, by nothing but what muster told it.
func withArrow(t *testing.T, c *hadoop.Cluster, native hadoop.Native, from, to string) *job {
	j := newJob(t, 1, settings{
		"muster.command": `"$PYTHON" in/arrow.py "$FROM" "$TO" > out/loaded`, "muster.input.in": "arrow.py", "muster.output.out": "out", "muster.restart": "never",
		"muster.env.PYTHON": native.Python, "muster.env.PYTHONPATH": native.Packages, "muster.env.FROM": from, "muster.env.TO": to,
	})
	j.lay(map[string]string{"arrow.py": arrow})
	j.onHadoop(c)
	j.env = append(j.env, "HADOOP_HOME="+native.Home)
	return j
}

// A program loads Hadoop's own library, which starts a JVM in it: both are found, and the classes, the cluster and the user.
func TestLibhdfs(t *testing.T) {
	t.Parallel()
	native := hadoop.NeedNative(t, "../..")
	c := hadoop.Shared(t)
	dir := c.Folder(t)
	j := withArrow(t, c, native, dir+"/x", dir+"/twice")
	j.env = append(j.env, "HADOOP_USER_NAME=grace")
	j.put(c, dir, map[string]string{"x": "1\n"})
	j.run("--set", "worker:yarn.memory=1024").succeeds(t)
	if got := read(filepath.Join(j.store, "out/worker-0/loaded")); got != filepath.Join(native.Home, "lib/native/libhdfs.so")+"\n" {
		t.Errorf("loaded %q", got)
	}
	if got := c.FsShell(t, "-cat", dir+"/twice"); got != "1\n1\n" {
		t.Errorf("wrote %q", got)
	}
	if got := c.FsShell(t, "-stat", "%u", dir+"/twice"); strings.TrimSpace(got) != "grace" {
		t.Errorf("the file is %s's, want grace's", got)
	}
}
