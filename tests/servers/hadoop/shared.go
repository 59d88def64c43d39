package hadoop

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
)

// shared is the one cluster of this test process.
var shared struct {
	once    sync.Once
	cluster *Cluster
	err     error
}

// Shared is one cluster for all tests of a package, with one DataNode and open to everybody, started when it is first
// asked for. Each test takes a Folder of its own and leaves the daemons alone. The package's TestMain must be
//
//	func TestMain(m *testing.M) { os.Exit(hadoop.Main(m)) }
func Shared(t testing.TB) *Cluster {
	t.Helper()
	h := needed(t)
	shared.once.Do(func() { shared.cluster, shared.err = share(h) })
	if shared.err != nil {
		t.Fatalf("start the HDFS of all tests: %v", shared.err)
	}
	return shared.cluster
}

// Main runs the tests and ends the shared cluster.
func Main(m *testing.M) int {
	defer func() {
		if shared.cluster != nil {
			shared.cluster.end(nil)
			os.RemoveAll(shared.cluster.Dir)
		}
	}()
	return m.Run()
}

func share(h home) (*Cluster, error) {
	dir, err := os.MkdirTemp("", "muster-hdfs-")
	if err != nil {
		return nil, err
	}
	c := &Cluster{Dir: dir, home: h}
	if err := c.claim(); err != nil {
		return c, err
	}
	return c, c.up()
}

// Folder makes a folder for this test alone, where everybody may write, and returns its path, as in /tests/TestName-1.
func (c *Cluster) Folder(t testing.TB) string {
	t.Helper()
	c.folders++
	dir := fmt.Sprintf("/tests/%s-%d", strings.NewReplacer("/", "-", "#", "-", ":", "-", " ", "-").Replace(t.Name()), c.folders)
	c.FsShell(t, "-mkdir", "-p", dir)
	c.FsShell(t, "-chmod", "777", dir)
	return dir
}
