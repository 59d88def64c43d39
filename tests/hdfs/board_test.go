package hdfs_test

import (
	"os"
	"strings"
	"testing"
)

// The folder of a board is in HDFS after the run, under the app's id, and nothing half is beside it.
func TestTheBoardsFolderIsKept(t *testing.T) {
	t.Parallel()
	j := newJob(t)
	program := "mkdir -p eventLog/deep && echo one >eventLog/e && echo two >eventLog/deep/f"
	j.must(os.Mkdir(j.work, 0o755)) //nolint:gosec // as muster makes it
	cmd := j.muster("hbox-submit", "--app-id", j.app, "--work-dir", j.work, "--engine", "process", "--app-type", "tensorflow",
		"--worker-num", "1", "--board-enable", "true", "--board-historydir", j.dir+"/boards", "--conf", "muster.side.board.http=false",
		"sh", "-c", program)
	said, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(said), j.dir+"/boards/"+j.app+" (2 files)") {
		t.Fatalf("%v\n%s", err, said)
	}
	at := j.dir + "/boards/" + j.app
	if got := j.hdfs.FsShell(t, "-cat", at+"/e", at+"/deep/f"); got != "one\ntwo\n" {
		t.Errorf("got %q", got)
	}
	if got := j.hdfs.FsShell(t, "-ls", "-C", j.dir+"/boards"); strings.TrimSpace(got) != at {
		t.Errorf("got %q", got)
	}
}
