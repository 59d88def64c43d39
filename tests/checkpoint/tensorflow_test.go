package checkpoint_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/muster-agent/muster/tests/commandline"
	"github.com/muster-agent/muster/tests/need"
	"github.com/muster-agent/muster/tests/servers/hadoop"
)

// checkout is the root of the repository, seen from this folder.
const checkout = "../.."

// python is the interpreter that `scripts/lab/python NAME` made.
func python(t *testing.T, name string) string {
	t.Helper()
	out, err := exec.Command(filepath.Join(checkout, "scripts/lab/python"), "where", name).Output()
	path := strings.TrimSpace(string(out))
	if err == nil {
		_, err = exec.LookPath(path)
	}
	if err != nil {
		need.Skip(t, "no "+name+" (make it with scripts/lab/python "+name+"): "+err.Error())
	}
	return path
}

// onHDFS is a machine whose Hadoop is the tests' own.
func onHDFS(t *testing.T, c *hadoop.Cluster) commandline.Host {
	h := commandline.NewHost(t, muster)
	h.Env = append(h.Env, "HADOOP_CONF_DIR="+c.ConfDir, "HADOOP_USER_NAME=root", "XDG_STATE_HOME="+t.TempDir())
	return h
}

// TensorFlow with user.checkpoint.dir on hdfs://, as the published packages have it. Its wheel has no file system of that name, and
// where there is no libhdfs it needs none: it saves in a folder, what is whole is in HDFS, and another work folder goes on from it.
// Where there is one it reads and writes there by itself.
func TestTensorFlowSavesToHDFS(t *testing.T) {
	at := python(t, "tensorflow")
	c := hadoop.Shared(t)
	dir := c.Folder(t)
	run := func(steps int) (from int) {
		h := onHDFS(t, c)
		work := commandline.WorkFolder(t)
		r := h.Start("run", "catalog:tensorflow", "--json", "--app-id", "digits", "--work-dir", work, "--instances", "ps=1,worker=1,tensorboard=0",
			"--set", "global:muster.python="+at, "--set", "site.global.user.checkpoint.dir="+c.URI+dir,
			"--set", "muster.env.TRAIN_STEPS="+strconv.Itoa(steps), "--set", "muster.env.TRAIN_PACE=0")
		groups, _ := r.Await(t, 0, `^worker-0 +\| (?:starting at|restored) step (\d+)$`)
		r.Succeed()
		from, err := strconv.Atoi(groups[0])
		if err != nil {
			t.Fatal(err)
		}
		if state, err := os.ReadFile(filepath.Join(work, "checkpoint", "checkpoint")); err != nil || !strings.Contains(string(state), "model.ckpt-") {
			t.Errorf("TensorFlow's own file: %q, %v", state, err)
		}
		return from
	}
	if from := run(100); from != 0 {
		t.Errorf("the first run began at %d", from)
	}
	stored := regexp.MustCompile(`/digits/(?:ps|worker)-0/step-(\d+)-g1-[0-9a-f]{8}/files/model\.ckpt-(\d+)\.index`)
	newest := 0
	for _, m := range stored.FindAllStringSubmatch(c.FsShell(t, "-ls", "-R", dir), -1) {
		step, err := strconv.Atoi(m[1])
		if err != nil || m[1] != m[2] {
			t.Errorf("%v: %v", m, err)
		}
		newest = max(newest, step)
	}
	if newest < 100 {
		t.Errorf("the newest step in HDFS is %d, want the last one", newest)
	}
	if from := run(newest + 20); from != newest {
		t.Errorf("the second run began at %d, want %d", from, newest)
	}
	t.Run("by itself", func(t *testing.T) {
		native := hadoop.NeedNative(t, checkout)
		state := filepath.Join(t.TempDir(), "checkpoint")
		if err := os.WriteFile(state, fmt.Appendf(nil, "model_checkpoint_path: \"model.ckpt-%d\"\n", newest), 0o600); err != nil {
			t.Fatal(err)
		}
		own := c.Folder(t)
		c.FsShell(t, "-cp", "-f", fmt.Sprintf("%s/digits/*/step-%d-g1-*/files/*", dir, newest), own)
		c.FsShell(t, "-put", "-f", state, own)
		reachesHDFS(t, c, native, own, newest)
	})
}

// reachesHDFS has TensorFlow go on from a checkpoint that lies in a folder of HDFS, where the host has a libhdfs: it reads and
// writes there itself, by tensorflow-io, with nothing in between.
func reachesHDFS(t *testing.T, c *hadoop.Cluster, native hadoop.Native, dir string, from int) {
	h := onHDFS(t, c)
	h.Env = append(h.Env, "HADOOP_HOME="+native.Home, "JAVA_HOME="+filepath.Dir(filepath.Dir(c.Java())))
	work, to := commandline.WorkFolder(t), from+20
	r := h.Start("run", "catalog:tensorflow", "--json", "--app-id", "direct", "--work-dir", work, "--instances", "ps=1,worker=1,tensorboard=0",
		"--set", "global:muster.python="+native.Python, "--set", "global:muster.env.PYTHONPATH="+native.Packages,
		"--set", "global:muster.env.LIBHDFS_OPTS=-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xmx96m", "--set", "global:yarn.memory=1024",
		"--set", "site.global.user.checkpoint.dir="+c.URI+dir, "--set", "muster.env.TRAIN_STEPS="+strconv.Itoa(to), "--set", "muster.env.TRAIN_PACE=0")
	r.Await(t, 0, `^worker-0 +\| restored step `+strconv.Itoa(from)+`$`)
	r.Succeed()
	listed := c.FsShell(t, "-ls", dir)
	for _, name := range []string{"/checkpoint", fmt.Sprintf("/model.ckpt-%d.index", to), fmt.Sprintf("/model.ckpt-%d.data-00000-of-00001", to)} {
		if !strings.Contains(listed, dir+name+"\n") {
			t.Errorf("no %s in\n%s", name, listed)
		}
	}
	if left, err := os.ReadDir(filepath.Join(work, "checkpoint")); err == nil && len(left) > 0 {
		t.Errorf("there is something in between: %v", left)
	}
}

// A process that reaches the store by itself: what lies there is recognised by the store's own listing, and told as a URL.
func TestRecognisedOnHDFS(t *testing.T) {
	c := hadoop.Shared(t)
	dir := c.Folder(t)
	h := onHDFS(t, c)
	top := t.TempDir()
	for name, text := range map[string]string{
		"metainfo.json":  `{"schemaVersion": "2.1", "application": {"name": "far", "components": [{"name": "worker"}]}}`,
		"resources.json": `{"schema": "http://example.org/specification/v2.0.0", "components": {"worker": {"yarn.role.priority": 1, "yarn.component.instances": 1, "yarn.memory": 64}}}`,
		"appConfig.json": `{"schema": "http://example.org/specification/v2.0.0", "global": {"muster.framework": "pytorch", "muster.restart": "instance",
			"muster.restart.backoff": "0.05s", "muster.checkpoint.reach": "process", "muster.checkpoint.dir": "` + c.URI + dir + `",
			"muster.command": "echo from $MUSTER_CHECKPOINT; exec sleep 1000"}}`,
	} {
		if err := os.WriteFile(filepath.Join(top, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	whole := filepath.Join(checkout, "shim/checkpoint/format/testdata/torch/zip/ckpt-9.pt")
	text, err := os.ReadFile(whole)
	if err != nil {
		t.Fatal(err)
	}
	torn := filepath.Join(top, "ckpt-12.pt")
	if err := os.WriteFile(torn, text[:len(text)/2], 0o600); err != nil {
		t.Fatal(err)
	}
	work := commandline.WorkFolder(t)
	r := h.Start("run", top, "--json", "--app-id", "far", "--work-dir", work)
	r.Await(t, 0, `^worker-0 +\| from *$`)
	c.FsShell(t, "-put", whole, torn, dir)
	l := lab{t: t}
	agentLog := filepath.Join(work, "log", "worker-0", "agent.log")
	l.await("the checkpoint", func() bool { return strings.Contains(l.read(agentLog), `msg="checkpoint found" step=9`) })
	h.Do("signal", "far/worker-0", "KILL")
	r.Await(t, 0, `^worker-0 +\| from `+regexp.QuoteMeta(c.URI+dir)+`/ckpt-9\.pt$`)
	if got := strings.Count(l.read(agentLog), `msg="incomplete checkpoint skipped"`); got != 1 {
		t.Errorf("%d warnings of the torn one, want 1", got)
	}
}
