package hdfs_test

import (
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/muster-agent/muster/shim/data"
	"github.com/muster-agent/muster/shim/data/transfer"
	"github.com/muster-agent/muster/shim/store/hdfs"
	"github.com/muster-agent/muster/tests/servers/hadoop"
)

// What a NameNode lists is dealt out as the golden table of package stage has it, for up to 13 files and 5 workers.
func TestAssignmentsOfListedFiles(t *testing.T) {
	t.Parallel()
	golden, err := os.ReadFile("../../shim/data/testdata/assign.txt")
	if err != nil {
		t.Fatal(err)
	}
	c := hadoop.Shared(t)
	local := t.TempDir()
	for i := range 13 {
		if err := os.WriteFile(filepath.Join(local, fmt.Sprintf("%02d", i)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	dir := c.Folder(t) + "/in"
	c.FsShell(t, "-put", local, dir)

	var b strings.Builder
	for n := range 14 {
		listed := list(t, c, dir, n)
		for workers := 1; workers <= 5; workers++ {
			fmt.Fprintf(&b, "%d files, %d workers:", n, workers)
			for worker := range workers {
				fmt.Fprintf(&b, " %s", names(data.Assignment{Workers: workers}.Share(listed, worker)))
			}
			fmt.Fprintf(&b, "  idle %v\n", data.Assignment{Workers: workers}.Idle(listed))
		}
	}
	if b.String() != string(golden) {
		t.Errorf("got\n%s\nwant\n%s", b.String(), golden)
	}
}

// list asks the NameNode for the first n files, by patterns: those with one digit and those with two.
func list(t *testing.T, c *hadoop.Cluster, dir string, n int) []transfer.File {
	t.Helper()
	if n == 0 {
		return nil
	}
	store, at, err := hdfs.Config{Conf: c.ConfDir}.Open(context.WithoutCancel(t.Context()), c.URI+dir)
	if err != nil {
		t.Fatal(err)
	}
	pattern := at + fmt.Sprintf("/0[0-%d]", min(n, 10)-1)
	if n > 10 {
		pattern = at + fmt.Sprintf("/{0[0-9],1[0-%d]}", n-11)
	}
	listed, err := transfer.Listing{Store: store}.List(t.Context(), pattern)
	if err != nil {
		t.Fatal(err)
	}
	return listed
}

func names(files []transfer.File) string {
	var all []string
	for _, f := range files {
		all = append(all, path.Base(f.Path))
	}
	if len(all) == 0 {
		return "-"
	}
	return strings.Join(all, ",")
}
