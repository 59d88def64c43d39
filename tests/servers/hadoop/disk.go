package hadoop

import (
	"fmt"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// mountDisks gives each DataNode a disk of its own, where a test asks for one of some size.
func (c *Cluster) mountDisks() error {
	if c.options.Disk == 0 {
		return nil
	}
	for i := range c.options.DataNodes {
		dir := c.dataDir(i)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		if err := unix.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%d,mode=755", c.options.Disk)); err != nil {
			return &os.PathError{Op: "mount", Path: dir, Err: err}
		}
		c.mounts = append(c.mounts, dir)
	}
	return nil
}

func (c *Cluster) unmountDisks(t testing.TB) {
	for _, dir := range c.mounts {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil && t != nil {
			t.Errorf("unmount %s: %v", dir, err)
		}
	}
}
