package hadoop

import (
	"fmt"
	"syscall"
	"testing"
)

// activate makes the first NameNode the active one, unless one is.
func (c *Cluster) activate() error {
	for i := range c.names {
		if active, err := c.active(i); err == nil && active {
			return nil
		}
	}
	_, err := c.try("haadmin", "-transitionToActive", nameNodeID(0))
	return err
}

func (c *Cluster) active(i int) (bool, error) {
	var s struct{ State string }
	if err := c.bean(i, "Hadoop:service=NameNode,name=NameNodeStatus", &s); err != nil {
		return false, err
	}
	return s.State == "active", nil
}

// Active is the number of the active NameNode; the test ends when there is none.
func (c *Cluster) Active(t testing.TB) int {
	t.Helper()
	for i, d := range c.names {
		if !d.running() {
			continue
		}
		if active, err := c.active(i); err == nil && active {
			return i
		}
	}
	t.Fatal("no NameNode is active")
	return 0
}

// Failover makes NameNode `to` the active one, by haadmin; the other may be dead.
func (c *Cluster) Failover(t testing.TB, to int) {
	t.Helper()
	c.run(t, "haadmin", "-failover", nameNodeID(1-to), nameNodeID(to))
	if err := c.await(c.names[to], c.writable); err != nil {
		t.Fatal(err)
	}
}

// KillNameNode ends a NameNode by SIGKILL.
func (c *Cluster) KillNameNode(i int) { c.names[i].kill() }

// StopNameNode ends a NameNode by SIGTERM.
func (c *Cluster) StopNameNode(t testing.TB, i int) {
	t.Helper()
	if err := c.names[i].end(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
}

// StartNameNode starts one again with its data and waits until it knows the DataNodes that run; of a pair it becomes
// the standby.
func (c *Cluster) StartNameNode(t testing.TB, i int) {
	t.Helper()
	if err := c.names[i].start(); err != nil {
		t.Fatal(err)
	}
	up := 0
	for _, d := range c.datas {
		if d.running() {
			up++
		}
	}
	err := c.await(c.names[i], func() error {
		state, err := c.state(i)
		if err == nil && state.NumLiveDataNodes < up {
			err = fmt.Errorf("%d of %d DataNodes", state.NumLiveDataNodes, up)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.await(c.names[i], c.writable); err != nil {
		t.Fatal(err)
	}
}

// NameNodePID is a NameNode's process id, 0 while it is down.
func (c *Cluster) NameNodePID(i int) int { return c.names[i].pid }

// NameNodeAddr is HOST:PORT of a NameNode's RPC.
func (c *Cluster) NameNodeAddr(i int) string { return local(c.ports.Names[i].RPC) }
