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
