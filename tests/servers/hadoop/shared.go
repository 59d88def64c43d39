package hadoop

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/user"
	"strings"
	"sync"
	"testing"

	"github.com/muster-agent/muster/tests/folder"
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
	needed(t)
	shared.once.Do(func() { shared.cluster, shared.err = share() })
	if shared.err != nil {
		t.Fatalf("start the HDFS of all tests: %v", shared.err)
	}
	return shared.cluster
}

// Main runs the tests and ends the shared cluster.
func Main(m *testing.M) int {
	defer func() {
		if shared.cluster != nil {
			shared.cluster.End()
			os.RemoveAll(shared.cluster.Dir)
		}
	}()
	return m.Run()
}

func share() (*Cluster, error) {
	dir, err := folder.Make("muster-hdfs-")
	if err != nil {
		return nil, err
	}
	return Make(dir, Options{})
}

// Make starts a cluster in a folder, for programs that are no tests. It ends with the process, or by End.
func Make(dir string, o Options) (*Cluster, error) {
	h, err := find()
	if err != nil {
		return nil, err
	}
	c := &Cluster{Dir: dir, options: o, home: h}
	if err := c.claim(); err != nil {
		return c, err
	}
	return c, c.up()
}

// End ends a cluster that Make started; its folder stays.
func (c *Cluster) End() { c.end(nil) }

// Folder makes a folder for this test alone, where everybody may write, and returns its path, as in /tests/TestName-1;
// for clusters without Kerberos.
func (c *Cluster) Folder(t testing.TB) string {
	t.Helper()
	dir := fmt.Sprintf("/tests/%s-%d", strings.NewReplacer("/", "-", "#", "-", ":", "-", " ", "-").Replace(t.Name()),
		c.folders.Add(1))
	c.web(t, dir, url.Values{"op": {"MKDIRS"}, "permission": {"777"}})
	return dir
}

// superuser is whom the daemons of a cluster without Kerberos run as.
func superuser() string {
	who, err := user.Current()
	if err != nil {
		return "root"
	}
	return who.Username
}

// web changes something by HTTP (Hadoop: WebHDFS), which costs no JVM.
func (c *Cluster) web(t testing.TB, path string, ask url.Values) {
	t.Helper()
	ask.Set("user.name", superuser())
	if c.KDC != nil {
		ask.Set("user.name", "hdfs")
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPut,
		"http://"+local(c.ports.Names[c.Active(t)].HTTP)+"/webhdfs/v1"+path+"?"+ask.Encode(), nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Close = true
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if answer, err := io.ReadAll(resp.Body); err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s of %s: %s: %s %v", ask.Get("op"), path, resp.Status, answer, err)
	}
}
