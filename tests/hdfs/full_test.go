package hdfs_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/muster-agent/muster/shim/status"
	"github.com/muster-agent/muster/tests/need"
)

// fails waits for the end and asserts a failure of the data, with words of the cause.
func (j *job) fails(words ...string) {
	j.t.Helper()
	_ = j.cmd.Wait() // the result says it
	var result status.ResultFile
	j.must(json.Unmarshal(j.stdout.Bytes(), &result))
	if result.Class == nil || *result.Class != "data" || result.Outcome != "failed" {
		j.t.Fatalf("%s (%s), want failed, class data\n%s", result.Outcome, result.Cause, j.stderr.Bytes())
	}
	for _, word := range words {
		if !strings.Contains(result.Cause, word) {
			j.t.Errorf("cause %q: want %q in it", result.Cause, word)
		}
	}
	j.stdout.Reset()
	j.stderr.Reset()
}

// An input that is larger than what is free: the file and the remedy are named, and half of it is not left.
func TestTheWorkFolderIsFull(t *testing.T) {
	need.Root(t)
	t.Parallel()
	j := newJob(t)
	big := filepath.Join(j.top, "big")
	j.must(os.WriteFile(big, bytes.Repeat([]byte("1,2,3\n"), 3<<20), 0o600)) // 18 MiB
	// It is alone: others would find no room either, and what has come of it when they do may be completed later.
	j.workers = 1
	j.hdfs.FsShell(t, "-rm", "-r", j.dir+"/in")
	j.hdfs.FsShell(t, "-mkdir", j.dir+"/in")
	j.hdfs.FsShell(t, "-put", big, j.dir+"/in/zz")
	j.must(os.Mkdir(j.work, 0o755)) //nolint:gosec // as muster makes it
	j.must(syscall.Mount("small", j.work, "tmpfs", 0, "size=12m,mode=0755"))
	t.Cleanup(func() { j.must(syscall.Unmount(j.work, syscall.MNT_DETACH)) })

	j.start(10, "0", "site.global.train.data=data", "muster.restart=never")
	j.fails(j.dir+"/in/zz", "no space left on device", "free some on the file system of")
	for name := range j.below(j.work) {
		if base := filepath.Base(name); base == "zz" || strings.HasPrefix(base, ".muster-half") {
			t.Errorf("left of what did not fit: %s", name)
		}
	}
}

// Outputs that a quota has no room for: what is wrong is named, nothing is there under a final name, and a run with
// room completes.
func TestTheOutputsQuotaIsSmall(t *testing.T) {
	t.Parallel()
	j := newJob(t)
	outputs := []string{
		"site.global.train.data=data", "worker:muster.output.model=" + j.dir + "/out", "site.global.train.model=model", "muster.restart=never",
	}
	j.hdfs.SetQuota(t, j.dir, 0, 1<<20) // a block of 128 MiB is counted whole while it is written
	j.start(20, "0", outputs...)
	j.fails("quota", j.dir+"/out")
	listed := j.hdfs.FsShell(t, "-ls", "-R", j.dir)
	for line := range strings.Lines(listed) {
		if fields := strings.Fields(line); len(fields) == 8 && strings.HasPrefix(fields[7], j.dir+"/out/worker-") || strings.Contains(line, "_SUCCESS") {
			t.Errorf("visible after the failure: %s", line)
		}
	}

	j.hdfs.SetQuota(t, j.dir, 0, 0)
	j.app += "b"
	j.must(os.RemoveAll(j.work))
	j.start(20, "0", outputs...)
	j.succeeds()
	finals, _ := j.finals(j.left())
	j.uploaded(finals, turns)
}
