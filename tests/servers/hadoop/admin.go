package hadoop

import (
	"net/url"
	"strconv"
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

// SetQuota limits a folder to so many names and bytes, copies counted; 0 means no limit. For clusters without Kerberos.
func (c *Cluster) SetQuota(t testing.TB, dir string, names, bytes int64) {
	t.Helper()
	limit := func(n int64) []string {
		if n == 0 {
			n = -1 // Hadoop's word for none
		}
		return []string{strconv.FormatInt(n, 10)}
	}
	c.web(t, dir, url.Values{"op": {"SETQUOTA"}, "namespacequota": limit(names), "storagespacequota": limit(bytes)})
}

// Snapshot keeps a folder as it is now at DIR/.snapshot/NAME; for clusters without Kerberos.
func (c *Cluster) Snapshot(t testing.TB, dir, name string) {
	t.Helper()
	c.web(t, dir, url.Values{"op": {"ALLOWSNAPSHOT"}})
	c.web(t, dir, url.Values{"op": {"CREATESNAPSHOT"}, "snapshotname": {name}})
}
