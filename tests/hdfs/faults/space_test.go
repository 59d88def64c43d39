package faults

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/muster-agent/muster/shim/checkpoint"
	"github.com/muster-agent/muster/shim/checkpoint/format"
	"github.com/muster-agent/muster/shim/data"
	"github.com/muster-agent/muster/shim/data/transfer"
	"github.com/muster-agent/muster/shim/files"
	"github.com/muster-agent/muster/shim/store"
	"github.com/muster-agent/muster/shim/store/hdfs"
	"github.com/muster-agent/muster/shim/store/storetest"
	"github.com/muster-agent/muster/tests/need"
	"github.com/muster-agent/muster/tests/servers/hadoop"
)

// The disks of all DataNodes are full: what is written is waited with, and goes on as soon as somebody removes something; in vain it is
// a named error, and nothing has a name that is not whole.
func TestDataNodesAreFull(t *testing.T) {
	need.Root(t)
	const keptFree = "dfs.datanode.round-robin-volume-choosing-policy.additional-available-space"
	t.Run("and the NameNode does not know it", func(t *testing.T) { // it names them, and they take no block
		t.Parallel()
		c := hadoop.Start(t, hadoop.Options{DataNodes: 1, BlockSize: mib, Disk: 32 * mib, Site: map[string]string{keptFree: "1073741824"}})
		l := open(t, c)
		local, to := t.TempDir(), path.Join(l.dir, "file")
		if err := os.WriteFile(filepath.Join(local, "file"), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
		again := 0
		how := transfer.Transfer{Retries: 2, Again: func(string, string) { again++ }}
		err := how.Send(t.Context(), l.Store, []store.Upload{{From: root(t, local), Name: "file", To: to}})
		if err == nil || again != 2 || !strings.Contains(err.Error(), to) || !strings.Contains(err.Error(), "disks are full") || !strings.Contains(err.Error(), "dfsadmin -report") {
			t.Errorf("tried %d times again: got %v", again, err)
		}
	})
	t.Run("and the NameNode knows it", func(t *testing.T) {
		t.Parallel()
		fullDisks(t, hadoop.Start(t, hadoop.Options{DataNodes: 1, BlockSize: mib, Disk: 32 * mib, Site: map[string]string{keptFree: "0"}}))
	})
}

// fullDisks writes in each way without room, and with room after a while.
func fullDisks(t *testing.T, c *hadoop.Cluster) {
	l := open(t, c)
	text := storetest.Noise(10*mib, 21)
	local, heavy := t.TempDir(), t.TempDir()
	for name, content := range map[string][]byte{filepath.Join(local, "step-7"): text, filepath.Join(heavy, "ballast"): storetest.Noise(26*mib, 22)} {
		if err := os.WriteFile(name, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		name  string
		write func(ctx context.Context, s *hdfs.Store, dir string) error
		final string // below dir
		read  func(b []byte) ([]byte, error)
	}{
		{"a file is sent", func(ctx context.Context, s *hdfs.Store, dir string) error {
			return transfer.Transfer{}.Send(ctx, s, []store.Upload{{From: root(t, local), Name: "step-7", To: dir + "/file"}})
		}, "file", nil},
		{"a checkpoint is stored", func(ctx context.Context, s *hdfs.Store, dir string) error {
			return keep(ctx, t, s, dir, local)
		}, "worker-0/step-7-g1-aaaaaaaa/files/step-7", nil},
		{"a stream is gathered", func(ctx context.Context, s *hdfs.Store, dir string) error {
			g := data.Gathering{Store: s, Dir: dir, Beside: root(t, t.TempDir()), Again: transfer.Transfer{}.Persevere, Bare: func(err error) { t.Error(err) }}
			_, err := g.Run(ctx, bytes.NewReader(text))
			return err
		}, "part-r.gz", func(b []byte) ([]byte, error) {
			z, err := gzip.NewReader(bytes.NewReader(b))
			if err != nil {
				return nil, err
			}
			var all bytes.Buffer
			_, err = all.ReadFrom(z)
			return bytes.TrimSuffix(all.Bytes(), []byte("\n")), err
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir, ballast := c.Folder(t), path.Join(c.Folder(t), "ballast")
			if err := (transfer.Transfer{}).Send(t.Context(), l.Store, []store.Upload{{From: root(t, heavy), Name: "ballast", To: ballast}}); err != nil {
				t.Fatal(err)
			}
			err := tt.write(t.Context(), full(t, c, time.Second, nil), dir)
			if !errors.Is(err, store.ErrWaited) || !strings.Contains(err.Error(), dir) || !strings.Contains(err.Error(), "dfsadmin -report") {
				t.Errorf("without room: got %v", err)
			}
			if info, err := l.Stat(t.Context(), path.Join(dir, tt.final)); err == nil && info.Size >= 10*mib {
				t.Errorf("there is a %s of %d bytes", tt.final, info.Size)
			}
			again := c.Folder(t)
			err = tt.write(t.Context(), full(t, c, time.Minute, func() {
				if err := l.Remove(context.WithoutCancel(t.Context()), ballast); err != nil {
					t.Error(err)
				}
			}), again)
			if err != nil {
				t.Fatalf("with room again: %v", err)
			}
			got := storetest.Get(t, l.Store, path.Join(again, tt.final), 0)
			if tt.read != nil {
				if got, err = tt.read(got); err != nil {
					t.Fatal(err)
				}
			}
			if !bytes.Equal(got, text) {
				t.Errorf("other bytes are there: %d, want %d", len(got), len(text))
			}
			for _, left := range []string{path.Join(dir, tt.final), path.Join(again, tt.final)} { // the next one needs the room
				if err := l.Remove(t.Context(), left); err != nil && !errors.Is(err, fs.ErrNotExist) {
					t.Error(err)
				}
			}
		})
	}
}

// full is a store with so much patience, and something that happens as soon as it waits.
func full(t *testing.T, c *hadoop.Cluster, patience time.Duration, happens func()) *hdfs.Store {
	t.Helper()
	var waits sync.Once
	conf := hdfs.Config{Conf: c.ConfDir, User: "ada", Patience: patience, Notice: func(string) {
		if happens != nil {
			waits.Do(happens)
		}
	}}
	s, _, err := conf.Open(t.Context(), c.URI)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// keep stores a checkpoint as an agent does.
func keep(ctx context.Context, t *testing.T, s *hdfs.Store, dir, local string) error {
	t.Helper()
	found, err := format.Rule{Pattern: "step-*"}.Look(os.DirFS(local))
	if err != nil || len(found.Whole) != 1 {
		t.Fatal(found, err)
	}
	m := checkpoint.Manifest{
		App: "app", Run: "1", Instance: "worker-0", Inc: strings.Repeat("a", 8), Generation: 1, Attempt: 1, Framework: "none", Place: ".", Shared: true,
		Founded: time.Unix(1000, 0).UTC(), Saved: time.Unix(2000, 0).UTC(),
	}
	_, _, err = checkpoint.Store{Files: s, Top: dir}.Put(ctx, m, found.Whole[0], files.As(nil).In(root(t, local)), func(ctx context.Context, uploads []store.Upload) error {
		return transfer.Transfer{}.Send(ctx, s, uploads)
	})
	return err
}
