package data

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/muster-agent/muster/shim/store"
	"github.com/muster-agent/muster/shim/store/file"
)

// layFiles writes files, by path and content; one that ends in / is a folder.
func layFiles(t *testing.T, dir string, files map[string]string) {
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

// filesIn is what lies in a folder: files with their content, folders that are empty.
func filesIn(t *testing.T, dir string) string {
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

func localStore(t *testing.T) store.Store {
	t.Helper()
	opened, _, err := file.Open(t.Context(), "file:/")
	if err != nil {
		t.Fatal(err)
	}
	return opened
}

func rootOf(t *testing.T, dir string) *os.Root {
	t.Helper()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = root.Close() })
	return root
}

// someLines has lines of all kinds of length and end.
func someLines(random *rand.Rand) string {
	var b strings.Builder
	for range random.IntN(60) {
		fmt.Fprintf(&b, "%d%s", random.IntN(1000), strings.Repeat("x", random.IntN(1<<random.IntN(8))))
		b.WriteString([]string{"\n", "\r\n", "\r", "\n\n", "\tv\n", "\n"}[random.IntN(6)])
	}
	if random.IntN(2) == 0 {
		b.WriteString("the last has no end")
	}
	return b.String()
}

// noiseOf does not get smaller.
func noiseOf(size int) string {
	random := rand.NewChaCha8([32]byte{})
	b := make([]byte, size)
	_, _ = random.Read(b) // it never fails
	for i := range b {
		b[i] = 'a' + b[i]%26
	}
	return string(b)
}

var errGone = errors.New("gone")
