// Package hdfs_test runs a real job on a real HDFS, by the built binary and its command line: catalog:handwriting with its
// images as files of HDFS and what it leaves there, in every strategy of inputs and outputs. Hadoop's own shell is the
// witness of what lies there.
package hdfs_test

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/muster-agent/muster/shim/status"
	"github.com/muster-agent/muster/tests/binary"
	"github.com/muster-agent/muster/tests/folder"
	"github.com/muster-agent/muster/tests/servers/hadoop"
)

// watchdog bounds every wait. It ends tests that have gone wrong and is part of no promise.
const watchdog = 2 * time.Minute

// muster is the binary under test. Set before the first test, never after.
var muster string

func TestMain(m *testing.M) {
	os.Exit(binary.Main(func(built string) int {
		muster = built
		return hadoop.Main(m)
	}))
}

// workers and files are those of every run here: neither divides the other.
const workers, files = 3, 5

// job is one run of catalog:handwriting with a folder of HDFS. Methods end the test on errors.
type job struct {
	workers        int // 0: the usual number
	t              testing.TB
	hdfs           *hadoop.Cluster
	app, top, dir  string            // dir is on HDFS
	work, local    string            // the work folder; the images, as they were put
	names          []string          // of the images' files, in their order
	texts          map[string][]byte // their lines
	reader         string            // the hdfs command
	env            []string          // of muster, beside what each has
	cmd            *exec.Cmd
	stdout, stderr bytes.Buffer
}

func newJob(t testing.TB) *job {
	t.Helper()
	return jobOn(t, hadoop.Shared(t))
}

// jobOn lays the images on HDFS: five files, one of them packed.
func jobOn(t testing.TB, c *hadoop.Cluster) *job {
	t.Helper()
	top := folder.Temp(t, "mh-")
	j := &job{t: t, hdfs: c, app: "h" + strings.ToLower(rand.Text()[:8]), top: top, dir: c.Folder(t), texts: map[string][]byte{}}
	j.work, j.local = filepath.Join(top, "w"), filepath.Join(top, "in")
	t.Cleanup(func() {
		if t.Failed() {
			logs, _ := filepath.Glob(filepath.Join(j.work, "log", "*", "*.log"))
			for _, path := range logs {
				t.Logf("%s:\n%s", path, j.read(path))
			}
		}
	})
	j.must(os.Mkdir(j.local, 0o755))
	lines := slices.Collect(strings.Lines(string(unpacked(t, j.read("../../packages/catalog/handwriting/package/files/digits.csv.gz")))))
	for i := range files {
		text := []byte(strings.Join(lines[len(lines)*i/files:len(lines)*(i+1)/files], ""))
		name, content := fmt.Sprintf("part-%02d.csv", i), text
		if i == 1 {
			name, content = name+".gz", packed(t, text)
		}
		j.names, j.texts[name] = append(j.names, name), text
		j.must(os.WriteFile(filepath.Join(j.local, name), content, 0o600))
	}
	c.FsShell(t, "-put", j.local, j.dir+"/in")
	j.reader = j.shell()
	return j
}

// shell writes what `hdfs` is on a machine that has Hadoop, for its word dfs.
func (j *job) shell() string {
	j.t.Helper()
	cmd := j.hdfs.HDFS("dfs")
	var script strings.Builder
	script.WriteString("#!/bin/sh\nshift\nexec")
	for _, word := range cmd.Args {
		fmt.Fprintf(&script, " '%s'", word)
	}
	script.WriteString(` "$@"` + "\n")
	path := filepath.Join(j.top, "hdfs")
	j.must(os.WriteFile(path, []byte(script.String()), 0o755)) //nolint:gosec // it is run
	return path
}

func (j *job) must(err error) {
	j.t.Helper()
	if err != nil {
		j.t.Fatal(err)
	}
}

func (j *job) read(path string) []byte {
	j.t.Helper()
	content, err := os.ReadFile(path)
	j.must(err)
	return content
}

// muster is the command with an environment of its own, in which Hadoop's configuration is.
func (j *job) muster(args ...string) *exec.Cmd {
	cmd := exec.CommandContext(j.t.Context(), muster, args...)
	cmd.Env = []string{
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=" + j.top, "TMPDIR=/tmp", "LANG=C",
		"MUSTER_AGENT_STATE_DIR=" + filepath.Join(j.top, "s"), "XDG_CACHE_HOME=" + filepath.Join(j.top, "cache"),
		"HADOOP_CONF_DIR=" + j.hdfs.ConfDir,
	}
	cmd.Env = append(cmd.Env, j.env...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = watchdog
	return cmd
}

// start runs handwriting with settings, KEY=VALUE, and input data of the job's folder.
func (j *job) start(steps int, pace string, settings ...string) {
	j.t.Helper()
	args := []string{
		"run", "catalog:handwriting", "--app-id", j.app, "--work-dir", j.work, "--json", "--engine", "process", "--instances", fmt.Sprintf("ps=1,worker=%d", cmp.Or(j.workers, workers)),
	}
	for _, setting := range append([]string{
		"worker:muster.input.data=" + j.dir + "/in", fmt.Sprintf("site.global.train.steps=%d", steps), "site.global.train.pace=" + pace,
	}, settings...) {
		args = append(args, "--set", setting)
	}
	j.cmd = j.muster(args...)
	j.cmd.Stdout, j.cmd.Stderr = &j.stdout, &j.stderr
	j.must(j.cmd.Start())
}

// succeeds waits for the end and asserts a success.
func (j *job) succeeds() {
	j.t.Helper()
	err := j.cmd.Wait()
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
		j.t.Fatal(err)
	}
	var result status.ResultFile
	j.must(json.Unmarshal(j.stdout.Bytes(), &result))
	if result.Outcome != "succeeded" || err != nil {
		j.t.Fatalf("%s (%s), %v, want succeeded\n%s", result.Outcome, result.Cause, err, j.stderr.Bytes())
	}
}

// left is what Hadoop's shell finds in the job's output: content by path.
func (j *job) left() map[string][]byte {
	j.t.Helper()
	to := filepath.Join(j.top, "left-"+rand.Text()[:6])
	j.hdfs.FsShell(j.t, "-get", j.dir+"/out", to)
	return j.below(to)
}

func (j *job) below(dir string) map[string][]byte {
	j.t.Helper()
	all := map[string][]byte{}
	j.must(filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			name, _ := filepath.Rel(dir, path)
			all[name] = j.read(path)
		}
		return err
	}))
	return all
}

// await looks again and again until see says yes.
func (j *job) await(what string, see func() bool) {
	j.t.Helper()
	poll := time.NewTicker(5 * time.Millisecond)
	defer poll.Stop()
	dog := time.NewTimer(watchdog)
	defer dog.Stop()
	for !see() {
		select {
		case <-poll.C:
		case <-dog.C:
			j.t.Fatalf("not seen within %s: %s", watchdog, what)
		}
	}
}

func packed(t testing.TB, text []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := w.Write(text)
	if err = errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func unpacked(t testing.TB, content []byte) []byte {
	t.Helper()
	r, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if _, err := b.ReadFrom(r); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
