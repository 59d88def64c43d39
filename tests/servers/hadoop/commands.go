package hadoop

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// classes of the hdfs command.
var classes = map[string]string{
	"dfs":      "org.apache.hadoop.fs.FsShell",
	"dfsadmin": "org.apache.hadoop.hdfs.tools.DFSAdmin",
	"haadmin":  "org.apache.hadoop.hdfs.tools.DFSHAAdmin",
	"fsck":     "org.apache.hadoop.hdfs.tools.DFSck",
	"getconf":  "org.apache.hadoop.hdfs.tools.GetConf",
}

// Environ is what programs of the cluster run with: this process's environment without another cluster's variables.
func (c *Cluster) Environ() []string {
	var env []string
	for _, entry := range os.Environ() {
		name, _, _ := strings.Cut(entry, "=")
		switch name {
		case "HADOOP_USER_NAME", "HADOOP_CONF_DIR", "HADOOP_TOKEN_FILE_LOCATION", "KRB5CCNAME", "KRB5_CONFIG",
			"JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "CLASSPATH":
		default:
			env = append(env, entry)
		}
	}
	env = append(env, "HADOOP_CONF_DIR="+c.ConfDir)
	if c.KDC != nil {
		env = append(env, c.KDC.Environ()...)
	}
	return env
}

// command is Java with arguments, as the cluster's superuser.
func (c *Cluster) command(args []string) *exec.Cmd {
	cmd := exec.CommandContext(context.Background(), c.home.java, args...)
	cmd.Env = c.Environ()
	return cmd
}

// HDFS is the hdfs command, as in HDFS("dfs", "-ls", "/"), as the cluster's superuser; not started yet. A user without
// Kerberos is HADOOP_USER_NAME in its Env.
func (c *Cluster) HDFS(args ...string) *exec.Cmd {
	class := classes[args[0]]
	if class == "" {
		class = args[0]
	}
	cmd := c.command(append(c.home.javaArgs("128m", c.ConfDir, class, c.properties()...), args[1:]...))
	if c.KDC != nil {
		cmd.Env = append(cmd.Env, "KRB5CCNAME="+c.KDC.superuser())
	}
	return cmd
}

// FsShell runs `hdfs dfs` on the cluster and returns what it wrote to stdout; the test ends when it fails.
func (c *Cluster) FsShell(t testing.TB, args ...string) string {
	t.Helper()
	return c.run(t, append([]string{"dfs"}, args...)...)
}

func (c *Cluster) run(t testing.TB, args ...string) string {
	t.Helper()
	out, err := c.try(args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func (c *Cluster) try(args ...string) (string, error) {
	var stdout, stderr bytes.Buffer
	cmd := c.HDFS(args...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return stdout.String(), fmt.Errorf("hdfs %s: %w\n%s%s", strings.Join(args, " "), err, stdout.Bytes(),
			stderr.Bytes())
	}
	return stdout.String(), nil
}

// FsShell runs `hdfs dfs` with the configuration folder of any cluster, as its superuser.
func FsShell(t testing.TB, confDir string, args ...string) string {
	t.Helper()
	c := &Cluster{Dir: filepath.Dir(confDir), ConfDir: confDir, home: needed(t)}
	return c.FsShell(t, args...)
}

// Clients is the environment, NAME=VALUE, by which a person's programs find the cluster, as its superuser.
func (c *Cluster) Clients() []string {
	env := []string{"HADOOP_CONF_DIR=" + c.ConfDir}
	if c.KDC != nil {
		env = append(env, append(c.KDC.Environ(), "KRB5CCNAME="+c.KDC.superuser())...)
	}
	return env
}

// Home is the folder that Hadoop lies in, as HADOOP_HOME.
func (c *Cluster) Home() string { return c.home.dir }

// Java is the program that Hadoop runs on.
func (c *Cluster) Java() string { return c.home.java }
