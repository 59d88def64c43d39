package hdfs_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/muster-agent/muster/packages/fetch"
	"github.com/muster-agent/muster/packages/fetch/fetchtest"
	"github.com/muster-agent/muster/packages/hdfs"
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
	fetchtest.Run(t, s, dir, 1<<20)
}

func TestPermission(t *testing.T) {
	c := hadoop.Shared(t)
	s, dir := open(t, c, hdfs.Config{User: "ada"}, c.Folder(t))
	fetchtest.Put(t, s, dir+"/private/a", []byte("x"))
	c.FsShell(t, "-chmod", "-R", "700", dir+"/private")
	other, _ := open(t, c, hdfs.Config{User: "bob"}, dir)
	_, openErr := other.Open(t.Context(), dir+"/private/a", fetch.Position{})
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

func TestQuota(t *testing.T) {
	c := hadoop.Shared(t)
	s, dir := open(t, c, hdfs.Config{User: "ada"}, c.Folder(t))
	c.SetQuota(t, dir, 2, 0)
	fetchtest.Put(t, s, dir+"/a", []byte("x"))
	if _, err := s.Create(t.Context(), dir+"/b"); !errors.Is(err, fetch.ErrQuota) || !strings.Contains(err.Error(), "-setQuota") {
		t.Errorf("names: got %v", err)
	}
	c.SetQuota(t, dir, 0, 4096)
	w, err := s.Create(t.Context(), dir+"/c")
	if err != nil {
		t.Fatal(err)
	}
	_, err = w.Write(make([]byte, 1<<20))
	if err = errors.Join(err, w.Close()); !errors.Is(err, fetch.ErrQuota) || !strings.Contains(err.Error(), "-setSpaceQuota") {
		t.Errorf("space: got %v", err)
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
