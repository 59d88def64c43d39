package cachedir

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/moby/sys/user"
	"golang.org/x/sys/unix"

	"github.com/muster-agent/muster/tests/need"
)

func must(t testing.TB, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

func TestOpen(t *testing.T) {
	need.Root(t)
	for _, tt := range []struct {
		name, want string
		make       func(dir string) error
	}{
		{"a new one", "", func(string) error { return nil }},
		{"one that others may look into", "", func(dir string) error { return os.Mkdir(dir+"/x", 0o755) }},
		{"another's", "owner: got uid 4242", func(dir string) error { return errors.Join(os.Mkdir(dir+"/x", 0o755), os.Chown(dir+"/x", 4242, 0)) }},
		{"one below another's", "owner of", func(dir string) error { return os.Chown(dir, 4242, 0) }},
		{"one below everybody's", "others may not write", func(dir string) error { return os.Chmod(dir, 0o777) }},
		{"one as in /tmp", "", func(dir string) error { return unix.Chmod(dir, 0o1777) }},
		{"a link to one's own", "", func(dir string) error {
			return errors.Join(os.Mkdir(dir+"/own", 0o700), os.Symlink("own", dir+"/x"))
		}},
		{"a link to another's", "owner: got uid 4242", func(dir string) error {
			return errors.Join(os.Mkdir(dir+"/his", 0o777), os.Chown(dir+"/his", 4242, 0), os.Symlink("his", dir+"/x"))
		}},
		{"a link to below another's", "owner of", func(dir string) error {
			return errors.Join(os.MkdirAll(dir+"/his/mine", 0o700), os.Chown(dir+"/his", 4242, 0), os.Symlink("his/mine", dir+"/x"))
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			must(t, tt.make(dir))
			root, err := Open(dir, "x", "a", "b/c")
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("got %v, want %q", err, tt.want)
			}
			if err != nil {
				return
			}
			info, err := os.Lstat(root)
			if err != nil || info.Mode() != os.ModeDir|0o700 {
				t.Errorf("got %v, %v, want a folder of mode 0700", info.Mode(), err)
			}
			if _, err := os.Stat(filepath.Join(root, "b", "c")); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	first, err := Take(t.Context(), path, syscall.LOCK_SH, nil)
	must(t, err)
	second, err := Try(path, syscall.LOCK_SH)
	if err != nil || second == nil {
		t.Fatalf("got %v, %v, want it shared", second, err)
	}
	must(t, second.Release())
	if held, err := Try(path, syscall.LOCK_EX); err != nil || held != nil {
		t.Errorf("got %v, %v, want nobody alone", held, err)
	}
	why := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	if _, err := Take(ctx, path, syscall.LOCK_EX, func() { cancel(why) }); !errors.Is(err, why) {
		t.Errorf("got %v, want a wait that is called off", err)
	}
	alone, err := Take(t.Context(), path, syscall.LOCK_EX, func() { must(t, first.Release()) })
	must(t, err, alone.Touch(), alone.Release())
}

func TestElsewhere(t *testing.T) {
	for _, tt := range []struct {
		name, uidMap string
		want         bool
	}{
		{"the machine's own", "         0          0 4294967295\n", false},
		{"one user", "0 1000 1\n", true},
		{"newuidmap's", "0 1000 1\n1 100000 65536\n", true},
		{"all but shifted", "0 1 4294967294\n", true},
		{"just made", "", true},
	} {
		numbers, err := user.ParseIDMap(strings.NewReader(tt.uidMap))
		if err != nil {
			t.Fatal(err)
		}
		if got := elsewhere(numbers); got != tt.want {
			t.Errorf("%s: got %v, want %v", tt.name, got, tt.want)
		}
	}
}
