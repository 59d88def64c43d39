package hadoop

import (
	"syscall"
	"testing"
)

// KillDataNode ends a DataNode by SIGKILL; the NameNode takes it for dead after some 20 s.
func (c *Cluster) KillDataNode(i int) { c.datas[i].kill() }

// StopDataNode ends a DataNode by SIGTERM: it tells its clients.
func (c *Cluster) StopDataNode(t testing.TB, i int) {
	t.Helper()
	if err := c.datas[i].end(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
}

// StartDataNode starts one again with its blocks and waits until it has reported them.
func (c *Cluster) StartDataNode(t testing.TB, i int) {
	t.Helper()
	d := c.datas[i]
	if err := d.start(); err != nil {
		t.Fatal(err)
	}
	if err := c.await(d, func() error { return c.registered(d) }); err != nil {
		t.Fatal(err)
	}
}

// DataNodePID is a DataNode's process id, 0 while it is down.
func (c *Cluster) DataNodePID(i int) int { return c.datas[i].pid }

// DataNodePort is the port of a DataNode's data transfers.
func (c *Cluster) DataNodePort(i int) int { return c.ports.Datas[i].Data }
