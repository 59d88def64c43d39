package data_test

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"path"
	"strings"
	"testing"

	"github.com/muster-agent/muster/shim/store"
	"github.com/muster-agent/muster/shim/store/hdfs"
	"github.com/muster-agent/muster/tests/servers/hadoop"
)

// onHDFS is a place on a cluster.
type onHDFS struct {
	t     testing.TB
	store store.Store
	dir   string
}

// walk shows each file below the place.
func (h onHDFS) walk(see func(name string, f store.Info)) {
	h.t.Helper()
	ctx := context.WithoutCancel(h.t.Context())
	var below func(dir string)
	below = func(dir string) {
		entries, err := h.store.List(ctx, dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // else it went meanwhile
			h.t.Fatal(err)
		}
		for _, e := range entries {
			if e.Dir {
				below(e.Path)
			} else {
				see(strings.TrimPrefix(e.Path, h.dir+"/"), e)
			}
		}
	}
	below(h.dir)
}

func (h onHDFS) bytes() (n int64) {
	h.walk(func(_ string, f store.Info) { n += f.Size })
	return n
}

func (h onHDFS) files() map[string]string {
	all := map[string]string{}
	h.walk(func(name string, f store.Info) {
		content, err := h.store.Open(h.t.Context(), f.Path, store.Position{})
		if err == nil {
			var text []byte
			text, err = io.ReadAll(content)
			all[name], err = string(text), errors.Join(err, content.Close())
		}
		if err != nil && !strings.HasPrefix(name, "_temporary/") { // what was being written may be unreadable
			h.t.Errorf("%s: %v", f.Path, err)
		}
	})
	return all
}

// The same on a real HDFS; afterwards the place is taken.
func TestKilledInMidUploadToHDFS(t *testing.T) {
	t.Parallel()
	c := hadoop.Shared(t)
	url := strings.TrimRight(c.URI, "/") + path.Join(c.Folder(t), "out")
	opened, dir, err := hdfs.Config{Conf: c.ConfDir}.Open(context.WithoutCancel(t.Context()), url)
	if err != nil {
		t.Fatal(err)
	}
	command, want := manyFiles(300)
	set := settings{"muster.command": command, "muster.output.model": url}
	j := newJob(t, 1, set)
	j.onHadoop(c)
	j.killedInMidUpload(onHDFS{t, opened, dir}, want, 30_000)

	again := newJob(t, 1, set)
	again.onHadoop(c)
	again.run("--engine", "process").fails(t, "definition", 65, url[strings.LastIndex(url, "/"):], "is there already; remove it, or name another place")
}
