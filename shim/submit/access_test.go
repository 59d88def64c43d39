package submit

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/store"
	"github.com/muster-agent/muster/shim/store/schemes"
	"github.com/muster-agent/muster/tests/need"
)

// TestAttackSharedStore: whoever may write the store, a folder above it or the run's folder could replace the binary.
func TestAttackSharedStore(t *testing.T) {
	for _, tt := range []struct {
		name, open string // which folder is open to others
		mode       os.FileMode
		refused    bool
	}{
		{"nobody else", "store", 0o755, false},
		{"sticky", "store", 0o777 | os.ModeSticky, false},
		{"all", "store", 0o777, true},
		{"the group", "store", 0o775, true},
		{"above", ".", 0o777, true},
		{"the run's folder", "store/app@1", 0o777, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.MkdirAll(filepath.Join(dir, "store/app@1"), 0o755); err != nil {
				t.Fatal(err)
			}
			at := filepath.Join(dir, tt.open)
			if err := os.Chmod(at, tt.mode); err != nil {
				t.Fatal(err)
			}
			s, err := openStore(t.Context(), filepath.Join(dir, "store"), schemes.Local())
			if err != nil {
				t.Fatal(err)
			}
			err = s.Folder("app", "1").checkAccess(t.Context())
			switch {
			case !tt.refused && err != nil:
				t.Errorf("got %v, want nil", err)
			case tt.refused && (exit.CodeOf(err) != exit.Forbidden || !strings.Contains(err.Error(), "others may write "+at+" ")):
				t.Errorf("got %v, want 77 that names %s", err, at)
			}
		})
	}
}

// TestAttackStoreOfAnother: another user's folder is his to change.
func TestAttackStoreOfAnother(t *testing.T) {
	need.Root(t)
	dir := t.TempDir()
	if err := os.Chown(dir, 12345, 12345); err != nil {
		t.Fatal(err)
	}
	s, err := openStore(t.Context(), filepath.Join(dir, "store"), schemes.Local())
	if err != nil {
		t.Fatal(err)
	}
	err = s.Folder("app", "1").checkAccess(t.Context())
	if exit.CodeOf(err) != exit.Forbidden || !strings.Contains(err.Error(), dir+" belongs to uid 12345") {
		t.Errorf("got %v, want 77", err)
	}
}

// cluster is a store on HDFS as far as modes go: those of the folders that exist.
type cluster struct {
	store.Store
	modes map[string]uint32
}

func (c cluster) Access(_ context.Context, path string) (store.Access, error) {
	mode, ok := c.modes[path]
	if !ok {
		return store.Access{}, os.ErrNotExist
	}
	return store.Access{Owner: "alice", Mode: mode}, nil
}

// TestAttackSharedStoreOnHDFS is the same by the modes that a NameNode tells.
func TestAttackSharedStoreOnHDFS(t *testing.T) {
	for _, tt := range []struct {
		modes   map[string]uint32
		refused string
	}{
		{map[string]uint32{"/": 0o755, "/tmp": 0o1777, "/tmp/m": 0o755}, ""},
		{map[string]uint32{"/": 0o755, "/tmp": 0o1777}, ""},
		{map[string]uint32{"/": 0o755, "/tmp": 0o777}, "/tmp"},
		{map[string]uint32{"/": 0o755, "/tmp": 0o1777, "/tmp/m": 0o775}, "/tmp/m"},
		{map[string]uint32{"/": 0o777}, "/"},
	} {
		s := &runStore{url: "hdfs://nn/tmp/m", in: cluster{modes: tt.modes}, root: "/tmp/m"}
		err := s.Folder("app", "1").checkAccess(t.Context())
		switch {
		case tt.refused == "" && err != nil:
			t.Errorf("%v: got %v, want nil", tt.modes, err)
		case tt.refused != "" && (exit.CodeOf(err) != exit.Forbidden || !strings.Contains(err.Error(), "others may write "+tt.refused+" ")):
			t.Errorf("%v: got %v, want 77 that names %s", tt.modes, err, tt.refused)
		}
	}
}
