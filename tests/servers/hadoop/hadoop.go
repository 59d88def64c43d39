// Package hadoop starts a real HDFS for tests, on 127.0.0.1: NameNodes and DataNodes by their own main classes, alone
// or as a pair of NameNodes, open to everybody or behind a KDC of its own. Enters a test and its wishes; leaves a
// cluster that has all its DataNodes, loses and gets back what a test wants, and is gone when the test ends, however it
// ends. The daemons come from `scripts/lab/hadoop build`; without them, and with -short, the test is skipped (package
// need).
package hadoop

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/muster-agent/muster/tests/folder"
	"github.com/muster-agent/muster/tests/need"
)

// watchdog bounds every wait of this package. It only ever ends a test that has gone wrong; Java starts slowly where
// many tests run beside.
const watchdog = 90 * time.Second

// Options are a test's wishes; the zero value is one NameNode and one DataNode, open to everybody.
type Options struct {
	// DataNodes is how many there are; 0 means 1.
	DataNodes int `json:",omitempty"`
	// HA asks for two NameNodes, of which the first becomes the active one; the URI names the pair.
	HA bool `json:",omitempty"`
	// Kerberos asks for a KDC and for tickets of everybody.
	Kerberos bool `json:",omitempty"`
	// Protection of RPC and of data, with Kerberos: authentication (so when empty), integrity or privacy.
	Protection string `json:",omitempty"`
	// ClockSkew in seconds is how long an expired ticket is still taken, with Kerberos; 0 means 300, as everywhere.
	ClockSkew int `json:",omitempty"`
	// Replication of files; 0 means one on each DataNode, at most 3.
	Replication int `json:",omitempty"`
	// BlockSize in bytes, at least 4096 and a multiple of 512; 0 means Hadoop's, 128 MiB.
	BlockSize int64 `json:",omitempty"`
	// Disk is the size of each DataNode's disk in bytes, a file system in memory, for which the test must be root; 0
	// means this machine's own.
	Disk int64 `json:",omitempty"`
	// Site is further properties for core-site.xml and hdfs-site.xml; they win.
	Site map[string]string `json:",omitempty"`
}

// A Cluster is one running HDFS. Methods end the test that they are given on errors; those that leave the
// daemons alone may be called side by side.
type Cluster struct {
	// ConfDir holds core-site.xml and hdfs-site.xml: HADOOP_CONF_DIR.
	ConfDir string
	// URI is fs.defaultFS: hdfs://localhost:PORT, or hdfs://lab with two NameNodes.
	URI string
	// Dir holds configuration, data and logs.
	Dir string
	// KDC is the cluster's own, nil without Kerberos.
	KDC *KDC

	options   Options
	home      home
	ports     ports
	names     []*daemon
	datas     []*daemon
	locks     []net.Listener
	mounts    []string     // disks of DataNodes
	outlives  bool         // the lab's: the daemons stay when this process ends
	folders   atomic.Int64 // made for tests
	kdcDaemon *daemon
}

// Start starts a cluster of the test's own and returns once all its DataNodes are there and files may be written.
func Start(t testing.TB, o Options) *Cluster {
	t.Helper()
	h := needed(t)
	c := &Cluster{Dir: folder.Temp(t, "muster-hdfs-"), options: o, home: h}
	t.Cleanup(func() { c.end(t) })
	if err := c.claim(); err != nil {
		t.Fatal(err)
	}
	if err := c.up(); err != nil {
		t.Fatalf("start an HDFS: %v", err)
	}
	return c
}

// needed skips where there is no Hadoop.
func needed(t testing.TB) home {
	t.Helper()
	if testing.Short() {
		t.Skip("starts a real HDFS: not with -short")
	}
	h, err := find()
	if err != nil {
		need.Skip(t, err.Error())
	}
	return h
}

// up lays out what is missing of a cluster and starts all that does not run.
func (c *Cluster) up() error {
	if c.options.DataNodes == 0 {
		c.options.DataNodes = 1
	}
	c.ConfDir = filepath.Join(c.Dir, "conf")
	c.URI = c.uri()
	if err := os.MkdirAll(filepath.Join(c.Dir, "logs"), 0o755); err != nil {
		return err
	}
	if c.options.Kerberos {
		if err := c.startKDC(); err != nil {
			return err
		}
	}
	if err := c.configure(); err != nil {
		return err
	}
	if err := c.format(); err != nil {
		return err
	}
	if err := c.mountDisks(); err != nil {
		return err
	}
	c.define()
	for _, d := range append(c.names, c.datas...) {
		if err := d.start(); err != nil {
			return err
		}
	}
	return c.ready()
}

// define names the daemons.
func (c *Cluster) define() {
	c.names, c.datas = nil, nil
	for i := range c.nameNodes() {
		c.names = append(c.names, c.daemon(fmt.Sprintf("namenode-%d", i), c.nameNodeArgs(i)))
	}
	for i := range c.options.DataNodes {
		c.datas = append(c.datas, c.daemon(fmt.Sprintf("datanode-%d", i), c.dataNodeArgs(i)))
	}
}

func (c *Cluster) nameNodes() int {
	if c.options.HA {
		return 2
	}
	return 1
}

// end is the clean-up: it neither fails nor leaves a process.
func (c *Cluster) end(t testing.TB) {
	for _, d := range c.daemons() {
		if t != nil && t.Failed() && d.running() {
			t.Logf("the end of %s:\n%s", d.log, d.logTail())
		}
		d.kill()
	}
	c.unmountDisks(t)
	for _, l := range c.locks {
		l.Close()
	}
}

// daemons are all of them, in the order in which they end.
func (c *Cluster) daemons() []*daemon {
	all := slices.Concat(c.datas, c.names)
	if c.kdcDaemon != nil {
		all = append(all, c.kdcDaemon)
	}
	return all
}
