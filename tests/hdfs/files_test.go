package hdfs_test

import (
	"bytes"
	"context"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/muster-agent/muster/shim/data/transfer"
	"github.com/muster-agent/muster/shim/store/hdfs"
	"github.com/muster-agent/muster/shim/store/storetest"
	"github.com/muster-agent/muster/tests/servers/hadoop"
)

const mib = 1 << 20

// brought are the files of a pattern, as they have come into a folder, by their names in the store.
func brought(t *testing.T, s *hdfs.Store, how transfer.Transfer, pattern string) map[string][]byte {
	t.Helper()
	listed, err := transfer.Listing{Store: s}.List(t.Context(), pattern)
	if err != nil {
		t.Fatalf("%s: %v", pattern, err)
	}
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	var copies []transfer.Copy
	for i, f := range listed {
		copies = append(copies, transfer.Copy{From: f, To: strconv.Itoa(i)})
	}
	if err := how.Bring(t.Context(), root, copies); err != nil {
		t.Fatalf("%s: %v", pattern, err)
	}
	all := map[string][]byte{}
	for i, f := range listed {
		content, err := root.ReadFile(strconv.Itoa(i))
		if err != nil || int64(len(content)) != f.Size {
			t.Errorf("%s: %d bytes, %v; listed with %d", f.Path, len(content), err, f.Size)
		}
		all[f.Path] = content
	}
	return all
}

func opened(t *testing.T, conf hdfs.Config, url string) *hdfs.Store {
	t.Helper()
	s, _, err := conf.Open(context.WithoutCancel(t.Context()), url)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Files that Hadoop's own command has laid down come as they are, whatever they are called and however long they are.
func TestFilesOfAllKinds(t *testing.T) {
	t.Parallel()
	c := hadoop.Shared(t)
	dir, local := c.Folder(t), filepath.Join(t.TempDir(), "in")
	names := []string{"with blank", "per%20cent", "{braces}", "[brackets]", "日本", "häßlich", "hash#", "quo'te", "star*", "a&b=c?d", "back\\slash", ".hidden", "_under"}
	want := map[string][]byte{}
	for i, name := range names {
		want["names/"+name] = []byte(strconv.Itoa(i))
	}
	for i, n := range []int{0, 1, mib - 1, mib, mib + 1, 2 * mib, 3 * mib} {
		want["sizes/"+strconv.Itoa(n)] = storetest.Noise(n, uint64(i)) //nolint:gosec // small
	}
	for name, content := range want {
		path := filepath.Join(local, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(filepath.Join(local, "empty/below"), 0o755); err != nil {
		t.Fatal(err)
	}
	c.FsShell(t, "-D", "dfs.blocksize="+strconv.Itoa(mib), "-put", local, dir)
	at := dir + "/in/"
	s := opened(t, hdfs.Config{Conf: c.ConfDir, User: "root"}, c.URI) // whose files they are
	c.Snapshot(t, dir, "before")

	all := map[string][]byte{}
	for name, content := range want {
		all[at+name] = content
	}
	same(t, "the folder", brought(t, s, transfer.Transfer{}, dir), all)
	for pattern, wants := range map[string][]string{
		"names/*blank":            {"names/with blank"},
		"names/per%20*":           {"names/per%20cent"},
		"names/[w日]*":             {"names/with blank", "names/日本"},
		"names/{with,quo'}*":      {"names/with blank", "names/quo'te"},
		"names/h?sh#":             {"names/hash#"},
		"sizes/{0,1048576}":       {"sizes/0", "sizes/1048576"},
		"*/2097152":               {"sizes/2097152"},
		"{sizes/1,names/[h-q]a*}": {"sizes/1", "names/hash#"},
	} {
		some := map[string][]byte{}
		for _, name := range wants {
			some[at+name] = want[name]
		}
		same(t, pattern, brought(t, s, transfer.Transfer{}, at+pattern), some)
	}
	if got := brought(t, s, transfer.Transfer{}, at+"empty"); len(got) > 0 {
		t.Errorf("an empty folder has %d files", len(got))
	}

	// what is gone and changed is as it was in the snapshot
	if err := s.Remove(t.Context(), at+"sizes/3145728"); err != nil {
		t.Fatal(err)
	}
	old := dir + "/.snapshot/before/in/sizes/"
	same(t, "the snapshot", brought(t, s, transfer.Transfer{}, old+"3*"), map[string][]byte{old + "3145728": want["sizes/3145728"]})
	if now := brought(t, s, transfer.Transfer{}, at+"sizes"); len(now) != 6 {
		t.Errorf("%d files, want 6: snapshots are no files of a folder", len(now))
	}
}

// Of a file that a writer still has open comes what is listed of it, and no byte that is not its own.
func TestAFileThatIsWritten(t *testing.T) {
	t.Parallel()
	c := hadoop.Shared(t)
	dir := c.Folder(t)
	conf := hdfs.Config{Conf: c.ConfDir, User: "ada"}
	writes, reads := opened(t, conf, c.URI), opened(t, conf, c.URI)
	content := storetest.Noise(3*mib, 31)
	w, err := writes.Create(t.Context(), dir+"/open")
	if err != nil {
		t.Fatal(err)
	}
	for _, upTo := range []int{0, mib, 2 * mib} {
		if _, err := w.Write(content[upTo : upTo+mib]); err != nil {
			t.Fatal(err)
		}
		got := brought(t, reads, transfer.Transfer{}, dir)[dir+"/open"]
		if !bytes.HasPrefix(content, got) {
			t.Errorf("with %d bytes written: got %d other ones", upTo+mib, len(got))
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	same(t, "closed", brought(t, reads, transfer.Transfer{}, dir), map[string][]byte{dir + "/open": content})
}

// gauge counts the connections to a port that are open at once.
type gauge struct {
	port string

	mu        sync.Mutex
	open, top int
}

type gauged struct {
	net.Conn
	once func()
}

func (g *gauge) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if err != nil || !strings.HasSuffix(address, ":"+g.port) {
		return conn, err
	}
	g.add(1)
	return gauged{conn, sync.OnceFunc(func() { g.add(-1) })}, nil
}

func (g *gauge) add(n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.open += n
	g.top = max(g.top, g.open)
}

func (c gauged) Close() error {
	c.once()
	return c.Conn.Close()
}

// Two agents bring the same files at once: each has all of them, and neither more connections to a DataNode than files at a time.
func TestTwoAtOnce(t *testing.T) {
	t.Parallel()
	c := hadoop.Shared(t)
	dir := c.Folder(t)
	s := opened(t, hdfs.Config{Conf: c.ConfDir, User: "ada"}, c.URI)
	want := map[string][]byte{}
	for i := range 40 {
		name := dir + "/" + strconv.Itoa(i)
		want[name] = storetest.Noise(200_000+i, uint64(i)) //nolint:gosec // small
		storetest.Put(t, s, name, want[name])
	}
	const most = 3
	var both sync.WaitGroup
	for _, user := range []string{"ada", "grace"} {
		g := &gauge{port: strconv.Itoa(c.DataNodePort(0))}
		store := opened(t, hdfs.Config{Conf: c.ConfDir, User: user, Dial: g.dial}, c.URI)
		both.Go(func() {
			same(t, user, brought(t, store, transfer.Transfer{Parallel: most}, dir), want)
			if g.top > most || g.top < 2 {
				t.Errorf("%s had %d connections at once, want at most %d", user, g.top, most)
			}
		})
	}
	both.Wait()
}
