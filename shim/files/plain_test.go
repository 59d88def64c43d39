package files

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/muster-agent/muster/tests/need"
)

// traps are what a hostile process may put in the place of its log; victim is a file that is not its own.
func traps(t *testing.T) (dir, victim string) {
	t.Helper()
	dir, victim = t.TempDir(), filepath.Join(t.TempDir(), "victim")
	if err := os.WriteFile(victim, []byte(`{"app":"secret"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Symlink(victim, filepath.Join(dir, "link")), unix.Mkfifo(filepath.Join(dir, "pipe"), 0o666),
		os.Mkdir(filepath.Join(dir, "folder"), 0o777)); err != nil {
		t.Fatal(err)
	}
	return dir, victim
}

func TestOnlyPlainFilesAreOpened(t *testing.T) {
	dir, victim := traps(t)
	if err := os.Link(victim, filepath.Join(dir, "hard")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"link", "pipe", "folder"} {
		path := filepath.Join(dir, name)
		for act, open := range map[string]func(string) (*os.File, error){"read": OpenPlain, "append": AppendPlain} {
			if f, err := open(path); !errors.Is(err, ErrNotPlain) {
				t.Errorf("%s %s: got %v, %v; want it refused", act, name, f, err)
			}
		}
		if got := PlainSize(path); got != 0 {
			t.Errorf("%s has %d bytes, want 0", name, got)
		}
	}
	if f, err := AppendPlain(filepath.Join(dir, "hard")); !errors.Is(err, ErrNotPlain) {
		t.Errorf("append to a file with another name: got %v, %v; want it refused", f, err)
	}
	if got, err := os.ReadFile(victim); err != nil || string(got) != `{"app":"secret"}` {
		t.Errorf("the file outside holds %q, %v", got, err)
	}
}

// A device is not opened at all: that alone may start it.
func TestNodesAreNotTouched(t *testing.T) {
	need.Root(t)
	path := filepath.Join(t.TempDir(), "node")
	if err := unix.Mknod(path, unix.S_IFCHR|0o666, int(unix.Mkdev(1, 5))); errors.Is(err, unix.EPERM) {
		need.Skip(t, "this user may make no node")
	} else if err != nil {
		t.Fatal(err)
	}
	if f, err := OpenPlain(path); !errors.Is(err, ErrNotPlain) {
		t.Errorf("got %v, %v; want it refused", f, err)
	}
}

func TestAppendPlainMakesAndContinues(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	for range 2 {
		f, err := AppendPlain(path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteString("x"); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != "xx" {
		t.Errorf("got %q, %v; want xx", got, err)
	}
	if _, err := AppendPlain(filepath.Join(path, "log")); err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("below a file: got %v", err)
	}
}

// A process moves a file of another user from a folder that both write to into the place of its log, or links it there
// where the host lets it (fs.protected_hardlinks=0), and has its agent, which is root, read it out.
func TestAttackLogIsRead(t *testing.T) {
	need.Root(t)
	top := t.TempDir()
	dir := filepath.Join(top, "log")
	if err := errors.Join(os.Mkdir(dir, 0o755), os.Lchown(dir, 4242, 4242)); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name  string
		owner int
		mode  fs.FileMode
		links bool
		read  bool
	}{
		{"root's, linked", 0, 0o600, true, false},
		{"root's, moved", 0, 0o640, false, false},
		{"another user's, moved", 4243, 0o600, false, false},
		{"its own", 4242, 0o600, false, true},
		{"everybody's, linked", 0, 0o644, true, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path, victim := filepath.Join(dir, "stdout.log"), filepath.Join(top, "victim")
			if err := errors.Join(os.WriteFile(victim, []byte("secret"), tt.mode), os.Lchown(victim, tt.owner, tt.owner),
				os.Link(victim, path)); err != nil {
				t.Fatal(err)
			}
			if !tt.links {
				if err := os.Remove(victim); err != nil {
					t.Fatal(err)
				}
			}
			text, err := ReadPlain(path)
			if tt.read != (err == nil) || !tt.read && !errors.Is(err, ErrNotPlain) {
				t.Errorf("got %q, %v; want it read: %t", text, err, tt.read)
			}
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			_ = os.Remove(victim)
		})
	}
	made, err := AppendPlain(filepath.Join(dir, "agent.log"))
	if err != nil {
		t.Fatal(err)
	}
	defer made.Close()
	if info, err := made.Stat(); err != nil || ownerOf(info).Uid != 4242 {
		t.Errorf("a new log: %v, %v; want it the folder's owner's", info, err)
	}
}
