package hadoop_test

import (
	"syscall"
	"testing"

	"github.com/muster-agent/muster/tests/servers/hadoop"
)

// A person's cluster stays until it is ended, and comes back with its files.
func TestTheLab(t *testing.T) {
	first := hadoop.Shared(t) // or there is no Hadoop
	t.Parallel()
	dir := t.TempDir()
	t.Cleanup(func() { _ = hadoop.Down(dir) })
	c, err := hadoop.Up(dir, hadoop.Options{})
	if err != nil {
		t.Fatal(err)
	}
	c.FsShell(t, "-touchz", "/kept")
	again, err := hadoop.Up(dir, hadoop.Options{DataNodes: 2})
	if err != nil {
		t.Fatal(err)
	}
	if again.NameNodePID(0) != c.NameNodePID(0) || again.URI != c.URI || again.URI == first.URI {
		t.Errorf("up again: got pid %d at %s, want %d at %s", again.NameNodePID(0), again.URI, c.NameNodePID(0), c.URI)
	}
	pids := []int{c.NameNodePID(0), c.DataNodePID(0)}
	if err := hadoop.Down(dir); err != nil {
		t.Fatal(err)
	}
	for _, pid := range pids {
		dead(t, pid)
	}
	if c, err = hadoop.Up(dir, hadoop.Options{}); err != nil {
		t.Fatal(err)
	}
	c.FsShell(t, "-test", "-e", "/kept")
	if err := syscall.Kill(c.NameNodePID(0), 0); err != nil {
		t.Errorf("up after down: %v", err)
	}
}
