// Package folder lays out folders for tests, says what lies in one, and holds that nothing outside of it was touched.
package folder

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Make makes a folder. Its path is short, since a socket's has 107 bytes, and processes of any user may look into it: a
// root agent's are nobody on this host.
func Make(prefix string) (string, error) {
	dir, err := os.MkdirTemp("", prefix)
	if err != nil {
		return "", err
	}
	return dir, os.Chmod(dir, 0o755) //nolint:gosec // see above
}

// Temp is Make's folder, gone after the test.
func Temp(t testing.TB, prefix string) string {
	t.Helper()
	dir, err := Make(prefix)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// OfAll makes the folder dir, into which processes of any user may write.
func OfAll(t testing.TB, dir string) string {
	t.Helper()
	if err := errors.Join(os.MkdirAll(dir, 0o755), os.Chmod(dir, 0o777|os.ModeSticky)); err != nil {
		t.Fatal(err)
	}
	return dir
}

// Lay writes files, by path and content; one that ends in / is a folder.
func Lay(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, name)
		err := os.MkdirAll(filepath.Dir(path), 0o755)
		if strings.HasSuffix(name, "/") {
			err = errors.Join(err, os.MkdirAll(path, 0o755))
		} else {
			err = errors.Join(err, os.WriteFile(path, []byte(text), 0o600))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// Content is what lies in a folder: files with their content, folders that are empty.
func Content(t *testing.T, dir string) string {
	t.Helper()
	var lines []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(dir, path)
		if d.IsDir() {
			if entries, _ := os.ReadDir(path); len(entries) == 0 && path != dir {
				lines = append(lines, name+"/")
			}
			return nil
		}
		text, err := os.ReadFile(path)
		lines = append(lines, name+"="+string(text))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(lines, " ")
}

// Root opens a folder until the end of the test.
func Root(t *testing.T, dir string) *os.Root {
	t.Helper()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = root.Close() })
	return root
}

// Hostile makes a work folder, and one outside of it whose file victim nobody may touch: links of an earlier process
// lead there, see Plant.
func Hostile(t *testing.T) (work, outside string) {
	t.Helper()
	work, outside = t.TempDir(), t.TempDir()
	Lay(t, outside, map[string]string{"victim": "whole"})
	return work, outside
}

// Plant puts a link into a folder.
func Plant(t *testing.T, dir, name, target string) {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.Symlink(target, path)); err != nil {
		t.Fatal(err)
	}
}

// Untouched holds that the folder that Hostile made outside is as it was.
func Untouched(t *testing.T, outside string) {
	t.Helper()
	if got := Content(t, outside); got != "victim=whole" {
		t.Errorf("outside is %s, want the victim alone", got)
	}
}
