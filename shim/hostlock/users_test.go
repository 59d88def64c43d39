package hostlock

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/muster-agent/muster/tests/need"
)

// A lock of root's is seen by all users, whoever has bound the name of its announcement.
func TestUsersSeeRootsLocks(t *testing.T) {
	need.Root(t)
	for _, attacked := range []bool{false, true} {
		name := fmt.Sprintf("gpu/GPU-seen-%t-%d", attacked, os.Getpid())
		if attacked {
			other(t, stranger, "attack", name)
		}
		lock, err := Take(name)
		if err != nil {
			t.Fatal(err)
		}
		if got, _ := other(t, stranger+1, "take", name); !strings.Contains(got, ErrHeld.Error()) {
			t.Errorf("attacked %t: a user got %q, want %v", attacked, got, ErrHeld)
		}
		if err := lock.Release(); err != nil {
			t.Fatal(err)
		}
	}
}

// A file that a killed agent left behind is no lock, for root and for others.
func TestLeftFileIsNoLock(t *testing.T) {
	need.Root(t)
	name := fmt.Sprintf("gpu/GPU-left-%d", os.Getpid())
	file := filepath.Join(rootFolder, fileName(name))
	if _, err := ownFolder(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Remove(file) })
	got, end := other(t, stranger, "take", name)
	end()
	if got != "<nil>" {
		t.Errorf("another user: got %q", got)
	}
	lock, err := Take(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := lock.Release(); err != nil {
		t.Fatal(err)
	}
}

// Root has its lock beside a user's, and is told of the user; a second user is told of the first.
func TestForeignHoldersAreTold(t *testing.T) {
	need.Root(t)
	name := fmt.Sprintf("gpu/GPU-foreign-%d", os.Getpid())
	if got, _ := other(t, stranger, "take", name); got != "<nil>" {
		t.Fatalf("the first user: %s", got)
	}
	if got, _ := other(t, stranger, "take", name); !strings.Contains(got, ErrHeld.Error()) {
		t.Errorf("the same user again: got %q, want %v", got, ErrHeld)
	}
	lock, err := Take(name)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = lock.Release() }()
	if got := lock.Other(); !strings.HasPrefix(got, "uid 54321 (pid ") {
		t.Errorf("root is told of %v, want uid %d", got, stranger)
	}
}

func TestFileOfAnotherIsNoLock(t *testing.T) {
	dir := t.TempDir()
	linked, pipe, link := filepath.Join(dir, "linked"), filepath.Join(dir, "pipe"), filepath.Join(dir, "link")
	if err := errors.Join(os.WriteFile(linked, nil, 0o600), os.Link(linked, linked+"2"), unix.Mkfifo(pipe, 0o600),
		os.Symlink(filepath.Join(dir, "made"), link), os.WriteFile(filepath.Join(dir, "open"), nil, 0o644)); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"linked": "2 links", "pipe": "not a regular file", "link": "too many levels", "open": "mode 0644",
	} {
		if l, err := takeIn(dir, name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, %v, want %s", name, l, err, want)
		}
	}
}
