package history

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/store/hdfs"
	"github.com/muster-agent/muster/shim/store/schemes"
	"github.com/muster-agent/muster/tests/servers/hadoop"
)

func TestMain(m *testing.M) { os.Exit(hadoop.Main(m)) }

// In HDFS it is the same, with the users of the cluster: what one leaves another neither reads nor replaces.
func TestHDFS(t *testing.T) {
	c := hadoop.Shared(t)
	url := c.URI + c.Folder(t) + "/history"
	as := func(user string) *Store {
		return New(url, schemes.All(hdfs.Config{Conf: c.ConfDir, User: user}))
	}
	for _, run := range []string{"r1", "r2"} {
		w, err := as("ada").Writer(t.Context(), "d1", run, false)
		if err != nil {
			t.Fatal(err)
		}
		put(t, w, 1)
		if err := w.Conclude(t.Context(), RunOf(end(run), Context{Now: day}), []byte("{}"), hide); err != nil {
			t.Fatal(err)
		}
	}
	s := as("ada")
	k, err := s.Load(t.Context(), "d1", "r1")
	if err != nil || k.Outcome != "failed" || len(k.States) != 1 {
		t.Fatalf("got %+v, %v", k, err)
	}
	var log, events bytes.Buffer
	err = errors.Join(k.Log(t.Context(), "worker-0", "stdout", &log), k.Events(t.Context(), "worker-0", 2, &events))
	if err != nil || log.String() != "one\ntwo\n" || !strings.HasPrefix(events.String(), `at":`) {
		t.Errorf("got %q, %q, %v", log.String(), events.String(), err)
	}
	if used, err := k.Samples(t.Context(), 0); err != nil || len(used) != 1 || len(used[0].At) != 2 {
		t.Errorf("got samples %+v, %v", used, err)
	}
	if runs, _, _, err := as("bob").List(t.Context()); err != nil || len(runs) != 0 {
		t.Errorf("another user: got %v, %v", runs, err)
	}
	if _, err := as("bob").Load(t.Context(), "d1", ""); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("another user: got %v", err)
	}
	c.FsShell(t, "-chmod", "1777", strings.TrimPrefix(url, c.URI))
	if _, err := as("bob").Writer(t.Context(), "d1", "r3", false); err == nil ||
		!strings.Contains(err.Error(), "folder d1 belongs to ada, not to bob: give the app another name") {
		t.Errorf("another user: got %v", err)
	}
	w, err := as("ada").Writer(t.Context(), "d1", "r2", true)
	if err != nil {
		t.Fatal(err)
	}
	gone, err := w.Sweep(t.Context(), Bound{Bytes: 1}, time.Now())
	if err != nil || len(gone) != 1 || gone[0].Run != "r1" {
		t.Errorf("got %v, %v", gone, err)
	}
	if _, err := as("ada").Load(t.Context(), "d1", "r1"); !errors.Is(err, registry.ErrNoApp) {
		t.Errorf("got %v of what was removed", err)
	}
}
