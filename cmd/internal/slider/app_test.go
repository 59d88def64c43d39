package slider

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/muster-agent/muster/tests/need"
)

// made is an app's folder as create leaves it, with something in its work folder.
func made(t *testing.T) *app {
	t.Helper()
	a := home(t.TempDir()).app(&call{}, "tf1")
	for _, dir := range []string{a.kept(), a.path("checkpoint"), a.path("worker-0")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{".instance-worker-0", ".package.stamp", "app.json", "run.err"} {
		if err := os.WriteFile(a.path(file), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	a.record = record{Version: 1, App: "tf1"}
	if err := a.record.write(a.kept()); err != nil {
		t.Fatal(err)
	}
	return a
}

func (a *app) path(name string) string { return filepath.Join(a.dir, name) }

// names are the names in a folder.
func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

// keep writes a file that nobody may remove, and gives a check that it is there.
func keep(t *testing.T, dir string) func() {
	t.Helper()
	path := filepath.Join(dir, "precious")
	if err := os.WriteFile(path, []byte("data"), 0o644); err != nil {
		t.Fatal(err)
	}
	return func() {
		t.Helper()
		if _, err := os.Stat(path); err != nil {
			t.Error(err)
		}
	}
}

func TestRemoveTakesItsOwnOnly(t *testing.T) {
	a := made(t)
	outside := t.TempDir()
	there, beside := keep(t, outside), keep(t, a.dir)
	for _, link := range []string{"checkpoint/link", ".slider/definition"} {
		if err := os.Symlink(outside, a.path(link)); err != nil {
			t.Fatal(err)
		}
	}
	others, err := a.remove()
	if err != nil || cmp.Diff(others, []string{a.path("precious")}) != "" {
		t.Errorf("got %v, %v", others, err)
	}
	there()
	beside()
	if left := names(t, a.dir); cmp.Diff(left, []string{"precious"}) != "" {
		t.Errorf("left: %v", left)
	}
}

func TestRemoveRefusesMounts(t *testing.T) {
	need.Root(t)
	a := made(t)
	outside := t.TempDir()
	there := keep(t, outside)
	point := a.path("checkpoint/check point")
	if err := os.Mkdir(point, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount(outside, point, "", unix.MS_BIND, ""); err != nil {
		t.Fatal(err)
	}
	others, err := a.remove()
	there()
	if err == nil || !strings.Contains(err.Error(), "mounted below it: "+point) {
		t.Errorf("got %v, %v", others, err)
	}
	if err := a.read(); err != nil {
		t.Errorf("it cannot be destroyed later: %v", err)
	}
	if err := unix.Unmount(point, 0); err != nil {
		t.Fatal(err)
	}
	if others, err := a.remove(); err != nil || len(others) > 0 {
		t.Errorf("got %v, %v", others, err)
	}
	there()
}

func TestOpenRefuses(t *testing.T) {
	for name, spoil := range map[string]func(a *app) error{
		"a link to another's": func(a *app) error {
			if err := os.Rename(a.dir, a.dir+"2"); err != nil {
				return err
			}
			return os.Symlink(a.dir+"2", a.dir)
		},
		"a record that is a link": func(a *app) error {
			if err := os.Rename(filepath.Join(a.kept(), recordFile), filepath.Join(a.kept(), "x")); err != nil {
				return err
			}
			return os.Symlink("x", filepath.Join(a.kept(), recordFile))
		},
		"another app's record": func(a *app) error {
			return (&record{Version: 1, App: "tf2"}).write(a.kept())
		},
		"a later form": func(a *app) error {
			return (&record{Version: 2, App: "tf1"}).write(a.kept())
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := made(t)
			if err := spoil(a); err != nil {
				t.Fatal(err)
			}
			if _, err := a.home.find(t.Context(), &call{}, "tf1"); err == nil {
				t.Error("it was taken")
			}
		})
	}
}
