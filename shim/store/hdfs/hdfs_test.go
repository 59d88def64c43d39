package hdfs_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/muster-agent/muster/shim/store"
	"github.com/muster-agent/muster/shim/store/hdfs"
	"github.com/muster-agent/muster/shim/store/storetest"
	"github.com/muster-agent/muster/tests/servers/hadoop"
)

func TestMain(m *testing.M) { os.Exit(hadoop.Main(m)) }

// open gives the store of a cluster for a user, who has the superuser's name where none is said.
func open(t testing.TB, c *hadoop.Cluster, conf hdfs.Config, path string) (*hdfs.Store, string) {
	t.Helper()
	if conf.Conf == "" {
		conf.Conf = c.ConfDir
	}
	s, at, err := conf.Open(t.Context(), c.URI+path)
	if err != nil {
		t.Fatal(err)
	}
	return s, at
}

func TestConformance(t *testing.T) {
	c := hadoop.Shared(t)
	s, dir := open(t, c, hdfs.Config{User: "ada"}, c.Folder(t))
	storetest.Run(t, s, dir, 1<<20)
}

func TestPermission(t *testing.T) {
	c := hadoop.Shared(t)
	s, dir := open(t, c, hdfs.Config{User: "ada"}, c.Folder(t))
	storetest.Put(t, s, dir+"/private/a", []byte("x"))
	c.FsShell(t, "-chmod", "-R", "700", dir+"/private")
	other, _ := open(t, c, hdfs.Config{User: "bob"}, dir)
	_, openErr := other.Open(t.Context(), dir+"/private/a", store.Position{})
	_, createErr := other.Create(t.Context(), dir+"/private/b")
	for what, err := range map[string]error{
		"open": openErr, "create": createErr, "remove": other.Remove(t.Context(), dir+"/private/a"),
		"mkdir": other.MkdirAll(t.Context(), dir+"/private/c"), "rename": other.Rename(t.Context(), dir+"/private/a", dir+"/mine"),
	} {
		if !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), "user=bob") || !strings.Contains(err.Error(), "drwx------") || !strings.Contains(err.Error(), "HADOOP_USER_NAME") {
			t.Errorf("%s: got %v, want who, the mode and what would do", what, err)
		}
	}
}

func TestChmod(t *testing.T) {
	c := hadoop.Shared(t)
	s, dir := open(t, c, hdfs.Config{User: "ada"}, c.Folder(t))
	storetest.Put(t, s, dir+"/a/b/c", []byte("x"))
	if err := s.Chmod(t.Context(), dir+"/a", 0o750, true); err != nil {
		t.Fatal(err)
	}
	if got := c.FsShell(t, "-stat", "%a", dir+"/a", dir+"/a/b", dir+"/a/b/c"); got != "750\n750\n750\n" {
		t.Errorf("got %q", got)
	}
	if err := s.Chmod(t.Context(), dir+"/none", 0o700, true); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("of nothing: %v", err)
	}
}

func TestQuota(t *testing.T) {
	c := hadoop.Shared(t)
	s, dir := open(t, c, hdfs.Config{User: "ada"}, c.Folder(t))
	c.SetQuota(t, dir, 2, 0)
	storetest.Put(t, s, dir+"/a", []byte("x"))
	if _, err := s.Create(t.Context(), dir+"/b"); !errors.Is(err, store.ErrQuota) || !strings.Contains(err.Error(), "-setQuota") {
		t.Errorf("names: got %v", err)
	}
	c.SetQuota(t, dir, 0, 4096)
	w, err := s.Create(t.Context(), dir+"/c")
	if err != nil {
		t.Fatal(err)
	}
	_, err = w.Write(make([]byte, 1<<20))
	if err = errors.Join(err, w.Close()); !errors.Is(err, store.ErrQuota) || !strings.Contains(err.Error(), "-setSpaceQuota") {
		t.Errorf("space: got %v", err)
	}
}

// deaf is a connection that is cut before the answer to the first question of a name comes back.
type deaf struct {
	net.Conn
	lost *atomic.Bool
	name []byte
	now  atomic.Bool
}

func (d *deaf) Write(b []byte) (int, error) {
	if bytes.Contains(b, d.name) && d.lost.CompareAndSwap(false, true) {
		d.now.Store(true)
	}
	return d.Conn.Write(b)
}

func (d *deaf) Read(b []byte) (int, error) {
	n, err := d.Conn.Read(b) // the NameNode has done it
	if d.now.Load() {
		return 0, errors.Join(net.ErrClosed, d.Conn.Close())
	}
	return n, err
}

// An answer that is lost does not make a stranger of what we have done ourselves.
func TestAnswersAreLost(t *testing.T) {
	c := hadoop.Shared(t)
	dir := c.Folder(t)
	for _, tt := range []struct {
		question string
		do       func(s *hdfs.Store, at string) error
	}{
		{"create", func(s *hdfs.Store, at string) error { storetest.Put(t, s, at, []byte("new")); return nil }},
		{"rename2", func(s *hdfs.Store, at string) error {
			storetest.Put(t, s, at+".tmp", []byte("new"))
			return s.Rename(t.Context(), at+".tmp", at)
		}},
		{"delete", func(s *hdfs.Store, at string) error {
			storetest.Put(t, s, at, []byte("new"))
			storetest.Put(t, s, at+".gone", []byte("old"))
			return s.Remove(t.Context(), at+".gone")
		}},
		{"complete", func(s *hdfs.Store, at string) error { storetest.Put(t, s, at, []byte("new")); return nil }},
	} {
		t.Run(tt.question, func(t *testing.T) {
			var lost atomic.Bool
			dial := func(ctx context.Context, network, address string) (net.Conn, error) {
				conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
				if err != nil {
					return nil, err
				}
				return &deaf{Conn: conn, lost: &lost, name: append([]byte{10, byte(len(tt.question))}, tt.question...)}, nil
			}
			s, _ := open(t, c, hdfs.Config{User: "ada", Dial: dial}, dir)
			at := dir + "/" + tt.question
			if err := tt.do(s, at); err != nil || !lost.Load() {
				t.Fatalf("got %v, an answer was lost: %v", err, lost.Load())
			}
			if got := storetest.Get(t, s, at, 0); string(got) != "new" {
				t.Errorf("got %q", got)
			}
			if _, err := s.Create(t.Context(), at); !errors.Is(err, fs.ErrExist) {
				t.Errorf("over what is there: got %v", err)
			}
		})
	}
}

func TestCancelledWrite(t *testing.T) {
	c := hadoop.Shared(t)
	s, dir := open(t, c, hdfs.Config{User: "ada"}, c.Folder(t))
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("enough")
	w, err := s.Create(ctx, dir+"/a")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(make([]byte, 1<<20)); err != nil {
		t.Fatal(err)
	}
	cancel(why)
	for range 100 {
		if _, err = w.Write(make([]byte, 1<<20)); err != nil {
			break
		}
	}
	if !errors.Is(err, why) || w.Close() == nil {
		t.Errorf("got %v", err)
	}
	if err := s.Remove(t.Context(), dir+"/a"); err != nil {
		t.Error(err)
	}
}

// hearing counts what comes over a connection.
type hearing struct {
	net.Conn
	bytes *atomic.Int64
}

func (h hearing) Read(b []byte) (int, error) {
	n, err := h.Conn.Read(b)
	h.bytes.Add(int64(n))
	return n, err
}

// A file of many blocks is compared by the sums of both sides: they are the same, and nothing is read back.
func TestWrittenIsComparedBySums(t *testing.T) {
	c := hadoop.Shared(t)
	conf := t.TempDir()
	for _, name := range []string{"core-site.xml", "hdfs-site.xml"} {
		text, err := os.ReadFile(filepath.Join(c.ConfDir, name))
		if err != nil {
			t.Fatal(err)
		}
		text = bytes.Replace(text, []byte("</configuration>"), []byte("<property><name>dfs.blocksize</name><value>1m</value></property></configuration>"), 1)
		if err := os.WriteFile(filepath.Join(conf, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var heard atomic.Int64
	dial := func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
		return hearing{conn, &heard}, err
	}
	s, dir := open(t, c, hdfs.Config{Conf: conf, User: "ada", Dial: dial}, c.Folder(t))
	for _, size := range []int{0, 1, 511, 512, 1 << 20, 1<<20 + 1, 5<<20 + 777} {
		at := dir + "/" + strconv.Itoa(size)
		heard.Store(0)
		want := storetest.Noise(size, 9)
		storetest.Put(t, s, at, want)
		if n := heard.Load(); n > 100_000 {
			t.Errorf("%d bytes: %d came back", size, n)
		}
		if got := storetest.Get(t, s, at, 0); !bytes.Equal(got, want) {
			t.Errorf("%d bytes: %d others are there", size, len(got))
		}
	}
	if got := c.FsShell(t, "-stat", "%o", dir+"/1"); got != "1048576\n" {
		t.Errorf("blocks of %q bytes", got)
	}
}
