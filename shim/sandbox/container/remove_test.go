package container

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/muster-agent/muster/tests/need"
)

func TestRemoveTreeFollowsNoLink(t *testing.T) {
	dir := t.TempDir()
	outside, tree := filepath.Join(dir, "outside"), filepath.Join(dir, "tree")
	shut := filepath.Join(tree, "a", "shut")
	if err := errors.Join(
		os.MkdirAll(filepath.Join(outside, "sub"), 0o755), os.WriteFile(filepath.Join(outside, "file"), nil, 0o644),
		os.MkdirAll(filepath.Join(shut, "in"), 0o755), os.WriteFile(filepath.Join(shut, "file"), nil, 0o400),
		os.Symlink(outside, filepath.Join(tree, "link")), os.Symlink("../../outside", filepath.Join(tree, "a", "link")),
		os.Link(filepath.Join(outside, "file"), filepath.Join(tree, "hard")),
		unix.Mkfifo(filepath.Join(tree, "fifo"), 0o600),
		os.Chmod(shut, 0),
	); err != nil {
		t.Fatal(err)
	}
	if err := removeTree(tree); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(tree); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the tree: %v", err)
	}
	for _, path := range []string{"sub", "file"} {
		if _, err := os.Lstat(filepath.Join(outside, path)); err != nil {
			t.Errorf("outside: %v", err)
		}
	}
	if err := removeTree(tree); err != nil {
		t.Errorf("nothing: %v", err)
	}
	if err := removeTree(filepath.Join(dir, "no", "such", "folder")); err != nil {
		t.Errorf("nothing in nothing: %v", err)
	}
}

// A folder that its owner may read and not write is emptied, too.
func TestRemoveTreeOfReadOnlyFolders(t *testing.T) {
	need.Root(t)
	const nobody = 65534
	dir := t.TempDir()
	tree, read := filepath.Join(dir, "tree"), filepath.Join(dir, "tree", "read")
	err := errors.Join(os.MkdirAll(read, 0o755), os.WriteFile(filepath.Join(read, "file"), nil, 0o400), os.Chmod(read, 0o555))
	for _, path := range []string{dir, tree, read} {
		err = errors.Join(err, os.Chown(path, nobody, nobody))
	}
	if err = errors.Join(err, os.Chmod(filepath.Dir(dir), 0o755)); err != nil {
		t.Fatal(err)
	}
	removed := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread goes, and its user with it
		_, err := unix.SetfsuidRetUid(nobody)
		removed <- errors.Join(err, removeTree(tree))
	}()
	if err := <-removed; err != nil {
		t.Error(err)
	}
}

// Whoever mounts a folder of the host in a container's loses nothing by its end.
func TestRemoveTreeEntersNoMount(t *testing.T) {
	need.Root(t)
	dir := t.TempDir()
	host, tree := filepath.Join(dir, "host"), filepath.Join(dir, "tree")
	at := filepath.Join(tree, "x", "mounted")
	if err := errors.Join(os.MkdirAll(host, 0o755), os.MkdirAll(at, 0o755), os.WriteFile(filepath.Join(host, "precious"), nil, 0o644)); err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread goes, and its mounts with it
		err := errors.Join(unix.Unshare(unix.CLONE_NEWNS), unix.Mount("", "/", "", unix.MS_PRIVATE|unix.MS_REC, ""), unix.Mount(host, at, "", unix.MS_BIND, ""))
		if err != nil {
			t.Error(err)
		}
		done <- removeTree(tree)
	}()
	if err := <-done; !errors.Is(err, unix.EXDEV) {
		t.Errorf("got %v, want %v", err, unix.EXDEV)
	}
	if _, err := os.Stat(filepath.Join(host, "precious")); err != nil {
		t.Error(err)
	}
}

// A start that fails early, and a record that lies, must take nothing away that no container was made in.
func TestNothingOfOthersIsCleared(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	for _, path := range []string{"canary", "folder/canary"} {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, folder := range []string{"", ".", "folder", "/", "//", dir, filepath.Join(dir, "folder")} {
		if err := Clear(t.Context(), folder); !errors.Is(err, errNotOurs) {
			t.Errorf("clear %q: got %v, want %v", folder, err, errNotOurs)
		}
	}
	if err := Clear(t.Context(), filepath.Join(dir, "absent")); err != nil {
		t.Errorf("a folder that is not there: %v", err)
	}
	// A file stands where the container's folder should be made: that fails, for root too.
	if c, err := Run(t.Context(), Spec{App: "a", Instance: "i-0", Dir: filepath.Join(dir, "canary", "x")}); err == nil {
		t.Errorf("a container was made below a file: %v", c.Dir())
	}
	for _, path := range []string{"canary", "folder/canary"} {
		if _, err := os.Lstat(path); err != nil {
			t.Errorf("gone: %v", err)
		}
	}
}

// A group of others that may write to the folder could have written its mark and its record.
func TestAttackFolderOfAGroup(t *testing.T) {
	need.Root(t)
	for name, tt := range map[string]struct {
		gid  int
		mode os.FileMode
		fine bool
	}{
		"root's alone":        {64001, 0o755, true},
		"root's group writes": {0, 0o775, true},
		"a group writes":      {64001, 0o775, false},
		"all write":           {0, 0o777, false},
	} {
		dir := filepath.Join(t.TempDir(), "c")
		err := errors.Join(os.Mkdir(dir, 0o700), os.WriteFile(filepath.Join(dir, markName), nil, 0o600),
			os.Chown(dir, 0, tt.gid), os.Chmod(dir, tt.mode))
		if err != nil {
			t.Fatal(err)
		}
		if err := Clear(t.Context(), dir); (err == nil) != tt.fine || err != nil && !errors.Is(err, errNotOurs) {
			t.Errorf("%s: got %v, want it cleared: %t", name, err, tt.fine)
		}
	}
}
