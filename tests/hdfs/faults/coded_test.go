package faults

import (
	"errors"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/muster-agent/muster/shim/data/transfer"
	"github.com/muster-agent/muster/shim/store"
	"github.com/muster-agent/muster/shim/store/storetest"
)

// coded reads and writes where HDFS keeps something else than a file's bytes in its blocks: each is refused by name, and no wrong
// byte goes either way.
func (l lab) coded(t *testing.T) {
	local := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(local, storetest.Noise(3*mib+5, 11), 0o600); err != nil {
		t.Fatal(err)
	}
	for kind, dir := range map[string]string{"erasure coded": l.Folder(t), "encrypted": l.Folder(t)} {
		if kind == "encrypted" {
			l.Encrypt(t, dir)
		} else {
			l.EraseCode(t, dir)
		}
		l.FsShell(t, "-put", local, dir+"/there")
		refused := func(did string, err error) {
			t.Helper()
			told, ok := errors.AsType[*store.Error](err)
			if !errors.Is(err, errors.ErrUnsupported) || !ok || told.Hint == "" || !strings.Contains(err.Error(), kind) || !strings.Contains(err.Error(), dir) {
				t.Errorf("%s, %s: got %v", kind, did, err)
			}
			t.Logf("%s: %v", did, err)
		}
		to := t.TempDir()
		refused("read", transfer.Transfer{}.Bring(t.Context(), root(t, to), []transfer.Copy{{From: transfer.File{Store: l.Store, Path: dir + "/there"}, To: "d/got"}}))
		if left, err := os.ReadDir(filepath.Join(to, "d")); err == nil && len(left) > 0 {
			t.Errorf("%s: left of what was read: %v", kind, left)
		}
		refused("written", transfer.Transfer{}.Send(t.Context(), l.Store, []store.Upload{{From: root(t, path.Dir(local)), Name: "file", To: dir + "/new/made"}}))
		if info, err := l.Stat(t.Context(), dir+"/new/made"); err == nil {
			t.Errorf("%s: there is %+v", kind, info)
		}
	}
}
