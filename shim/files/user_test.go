package files

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/muster-agent/muster/shim/plan"
	"github.com/muster-agent/muster/shim/policy"
	"github.com/muster-agent/muster/tests/need"
)

func TestOwnAll(t *testing.T) {
	need.Root(t)
	dir := t.TempDir()
	outside := filepath.Join(t.TempDir(), "outside")
	for _, path := range []string{filepath.Join(dir, "a", "b"), outside} {
		if err := os.MkdirAll(path, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(outside, filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	shared, name := filepath.Join(outside, "file"), filepath.Join(dir, "hard")
	if err := os.WriteFile(shared, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(shared, name); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if err := As(&plan.UserFacts{UID: 4242, GID: 4243}).OwnAll(root); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]uint32{dir: 4242, filepath.Join(dir, "a", "b"): 4242, filepath.Join(dir, "link"): 4242, outside: 0, shared: 0} {
		info, err := os.Lstat(path)
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Sys().(*syscall.Stat_t).Uid; got != want {
			t.Errorf("%s belongs to %d, want %d", path, got, want)
		}
	}
}

// A process may write to a folder of the host and move a file of another user from there into its own folder. The file
// stays the other user's at each later start, whoever the process then is.
func TestAttackMovedFileIsAdopted(t *testing.T) {
	need.Root(t)
	top := t.TempDir()
	moved, dir := filepath.Join(top, "moved"), filepath.Join(top, "instance")
	if err := errors.Join(os.Mkdir(dir, 0o700), os.WriteFile(moved, []byte("x"), 0o600)); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	work, err := Below(top)
	if err != nil {
		t.Fatal(err)
	}
	defer work.Close()
	first, second := As(&plan.UserFacts{UID: 4242, GID: 4242}), As(&plan.UserFacts{UID: 4243, GID: 4243})
	own := filepath.Join(dir, "own")
	if err := errors.Join(first.OwnAll(root), os.Rename(moved, filepath.Join(dir, "moved")), os.WriteFile(own, nil, 0o600),
		os.Lchown(own, 4242, 4242)); err != nil {
		t.Fatal(err)
	}
	for i, user := range []User{first, second} {
		laid, late := fmt.Sprint("laid-", i), fmt.Sprint("late-", i)
		err := user.OwnAll(root)
		if err == nil {
			err = work.Replace(user.In(root), laid, func(tmp *os.Root, _ string) error {
				// A file of the host's root comes while the agent lays out.
				return errors.Join(tmp.WriteFile(Filled, nil, 0o644), root.WriteFile(late, nil, 0o600))
			})
		}
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]int{"moved": 0, late: 0, "late-0": 0, "own": 4242 + i, laid: 4242 + i, "laid-0": 4242 + i, ".": 4242 + i}
		for name, want := range want {
			info, err := root.Lstat(name)
			if err != nil {
				t.Fatal(err)
			}
			if got := int(ownerOf(info).Uid); got != want {
				t.Errorf("start %d: %s belongs to %d, want %d", i+2, name, got, want)
			}
		}
	}
}

// Files that their author alone may read are the app's as well as any others, for each of its users.
func TestLetRead(t *testing.T) {
	need.Root(t)
	dir := t.TempDir()
	for name, mode := range map[string]os.FileMode{"secret": 0o600, "tool": 0o700, "open": 0o644} {
		path := filepath.Join(dir, "files", name)
		err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, nil, mode), os.Chmod(path, mode))
		if err != nil {
			t.Fatal(err)
		}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	for _, c := range []struct {
		gid  int
		want map[string]os.FileMode
	}{
		{4243, map[string]os.FileMode{"files": 0o750, "files/secret": 0o640, "files/tool": 0o750, "files/open": 0o644}},
		{4243, map[string]os.FileMode{"files": 0o750, "files/secret": 0o640, "files/tool": 0o750, "files/open": 0o644}},
		{4245, map[string]os.FileMode{"files": 0o755, "files/secret": 0o644, "files/tool": 0o755, "files/open": 0o644}},
	} {
		if err := As(&plan.UserFacts{UID: 4242, GID: c.gid}).LetRead(root); err != nil {
			t.Fatal(err)
		}
		for name, want := range c.want {
			if info, err := root.Lstat(name); err != nil || info.Mode().Perm() != want {
				t.Errorf("for group %d, %s: %v, %v, want %o", c.gid, name, info.Mode(), err, want)
			}
		}
	}
}

// A refusal names the uid that the process has on the host, which its user may not know.
func TestRefusalNamesTheUser(t *testing.T) {
	need.Root(t)
	top := t.TempDir()
	a := Admission{
		Work: t.TempDir(), Root: plan.RootHost, User: As(&plan.UserFacts{UID: 64001, GID: 64001}),
		Policy: policy.Policy{Roots: []policy.Root{{Path: top}}},
	}
	store, path, err := a.Open(filepath.Join(top, "out"), true)
	if err != nil {
		t.Fatal(err)
	}
	err = store.MkdirAll(t.Context(), path)
	for _, want := range []string{"uid 64001", path, "permission denied", "let this user"} {
		if !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q in it", err, want)
		}
	}
}

// What a process has closed to itself is replaced at the next start, and what another user has closed stays.
func TestReplaceClosedFolder(t *testing.T) {
	need.Root(t)
	for name, tt := range map[string]struct {
		owner    int
		commands bool
		refused  bool
	}{"its own": {4242, false, false}, "another's": {4243, false, true}, "one's of its namespace": {4243, true, false}} {
		t.Run(name, func(t *testing.T) {
			top := t.TempDir()
			at := filepath.Join(top, "w-0", "app", "install", "d", "e")
			if err := errors.Join(os.MkdirAll(at, 0o755), os.WriteFile(filepath.Join(at, "f"), nil, 0o444)); err != nil {
				t.Fatal(err)
			}
			for dir := at; dir != top; dir = filepath.Dir(dir) {
				owner, mode := 4242, os.FileMode(0o555)
				switch filepath.Base(dir) {
				case "d", "e":
					owner = tt.owner
				case "w-0":
					mode = 0o700
				}
				if err := errors.Join(os.Chmod(dir, mode), os.Chown(dir, owner, owner)); err != nil {
					t.Fatal(err)
				}
			}
			work, err := Below(top)
			if err != nil {
				t.Fatal(err)
			}
			defer work.Close()
			in, err := work.Make(filepath.Join(top, "w-0"))
			if err != nil {
				t.Fatal(err)
			}
			defer in.Close()
			user := &plan.UserFacts{UID: 4242, GID: 4242}
			if tt.commands {
				user.Commands = func(uid int) bool { return uid == tt.owner }
			}
			err = work.Replace(As(user).In(in), "app/install", func(tmp *os.Root, _ string) error {
				return tmp.WriteFile(Filled, nil, 0o644)
			})
			if errors.Is(err, fs.ErrPermission) != tt.refused || (err != nil) != tt.refused {
				t.Errorf("got %v, refused: want %v", err, tt.refused)
			}
			if _, err := os.Stat(filepath.Join(at, "f")); (err == nil) != tt.refused {
				t.Errorf("the file that was there: got %v", err)
			}
		})
	}
}

// A folder of another user that a process has moved in, in the place of what its agent writes, stays as it is.
func TestWriteRemovesNothingOfOthers(t *testing.T) {
	need.Root(t)
	user := As(&plan.UserFacts{UID: 4242, GID: 4242})
	for name, write := range map[string]func(in UserFolder) error{
		"roster.json.new": func(in UserFolder) error { return in.Write("roster.json", "new", 0o644) },
		"status.out":      func(in UserFolder) error { f, err := in.New("status.out"); return errors.Join(err, f.Close()) },
	} {
		dir := t.TempDir()
		moved := filepath.Join(dir, name)
		file := filepath.Join(moved, "closed", "file")
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, nil, 0o600), os.Chown(file, 4243, 4243),
			os.Chown(filepath.Dir(file), 4243, 4243), os.Chown(moved, 4243, 4243), os.Chmod(moved, 0o777), os.Chown(dir, 4242, 4242)); err != nil {
			t.Fatal(err)
		}
		root, err := os.OpenRoot(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer root.Close()
		if err := write(user.In(root)); !errors.Is(err, fs.ErrPermission) {
			t.Errorf("%s: got %v, want it refused", name, err)
		}
		if _, err := os.Stat(file); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What the agent writes is the user's, also where the process has closed its folder to itself.
func TestWriteIsTheUsers(t *testing.T) {
	need.Root(t)
	dir := t.TempDir()
	if err := errors.Join(os.Chown(dir, 4242, 4242), os.Chmod(dir, 0o555)); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if err := As(&plan.UserFacts{UID: 4242, GID: 4242}).In(root).Write("app/conf/key", "new", 0o600); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]os.FileMode{"app": 0o755, "app/conf/key": 0o600} {
		info, err := root.Lstat(name)
		if err != nil || info.Mode().Perm() != want || ownerOf(info).Uid != 4242 {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
}
