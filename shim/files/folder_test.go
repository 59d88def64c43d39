package files

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/muster-agent/muster/shim/plan"
	"github.com/muster-agent/muster/tests/folder"
	"github.com/muster-agent/muster/tests/need"
)

// hostile is a work folder in which an earlier process has put links to a folder of the host's.
func hostile(t *testing.T) (w Folder, outside string) {
	t.Helper()
	dir, outside := folder.Hostile(t)
	w, err := Below(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	return w, outside
}

func write(w Folder, path string) error {
	name, err := w.Rel(path)
	if err != nil {
		return err
	}
	return As(nil).In(w.Root).Write(name, "new", 0o644)
}

func TestFilesLeaveNoLinkBehind(t *testing.T) {
	for name, links := range map[string]map[string]string{
		"the file":           {"w-0/roster.json": "victim"},
		"its temporary name": {"w-0/roster.json.new": "victim"},
	} {
		t.Run(name, func(t *testing.T) {
			w, outside := hostile(t)
			for link, target := range links {
				folder.Plant(t, w.Name(), link, filepath.Join(outside, target))
			}
			path := filepath.Join(w.Name(), "w-0", "roster.json")
			if err := write(w, path); err != nil {
				t.Fatal(err)
			}
			if info, err := os.Lstat(path); err != nil || !info.Mode().IsRegular() {
				t.Errorf("got %v, %v; want a file", info, err)
			}
			folder.Untouched(t, outside)
		})
	}
}

func TestFoldersFollowNoLink(t *testing.T) {
	for _, link := range []string{"w-0/app", "w-0/app/conf", "w-0/app/conf/env"} {
		w, outside := hostile(t)
		folder.Plant(t, w.Name(), link, outside)
		path := filepath.Join(w.Name(), "w-0", "app", "conf", "env", "X")
		if err := write(w, path); err == nil || !strings.Contains(err.Error(), "is a link, want a folder") {
			t.Errorf("%s: got %v, want it refused", link, err)
		}
		folder.Untouched(t, outside)
	}
	w, _ := hostile(t)
	for _, path := range []string{w.Name() + "/../x", "/etc"} {
		if f, err := w.Make(path); err == nil {
			t.Errorf("%s: got %v, want it refused", path, f.Name())
		}
	}
}

// A pipe in a file's place would hold the agent up for ever.
func TestFilesWaitForNobody(t *testing.T) {
	w, _ := hostile(t)
	path := filepath.Join(w.Name(), "w-0", "roster.json")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{path, path + ".new"} {
		if err := unix.Mkfifo(name, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if err := write(w, path); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != "new" {
		t.Errorf("got %q, %v", text, err)
	}
}

func TestSecretFilesArePrivate(t *testing.T) {
	need.Root(t)
	w, _ := hostile(t)
	dir := filepath.Join(w.Name(), "w-0")
	if err := errors.Join(os.MkdirAll(dir, 0o755), os.Chown(dir, 4242, 4243)); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]fs.FileMode{"token": 0o600, "roster.json": 0o644} {
		path := filepath.Join(dir, name)
		if err := As(&plan.UserFacts{UID: 4242, GID: 4243}).In(w.Root).Write("w-0/"+name, "x", want); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Sys().(*syscall.Stat_t).Uid; got != 4242 || info.Mode() != want {
			t.Errorf("%s: uid %d, mode %v; want 4242, %v", name, got, info.Mode(), want)
		}
	}
}
