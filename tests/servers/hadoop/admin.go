package hadoop

import (
	"fmt"
	"testing"
)

// SafeMode makes the file system read-only, or writable again.
func (c *Cluster) SafeMode(t testing.TB, on bool) {
	t.Helper()
	to := "leave"
	if on {
		to = "enter"
	}
	c.run(t, "dfsadmin", "-safemode", to)
}

// SetQuota limits a folder to so many names and bytes, copies counted; 0 means no limit.
func (c *Cluster) SetQuota(t testing.TB, dir string, names, bytes int64) {
	t.Helper()
	for _, q := range []struct {
		set, clear string
		limit      int64
	}{{"-setQuota", "-clrQuota", names}, {"-setSpaceQuota", "-clrSpaceQuota", bytes}} {
		if q.limit > 0 {
			c.run(t, "dfsadmin", q.set, fmt.Sprint(q.limit), dir)
		} else {
			c.run(t, "dfsadmin", q.clear, dir)
		}
	}
}
