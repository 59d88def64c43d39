package gc

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Files that were fetched for a user are found wherever the cache is.
func TestCachesOfUsers(t *testing.T) {
	cache := filepath.Join(t.TempDir(), "odd[x]")
	t.Setenv("XDG_CACHE_HOME", cache)
	dir := filepath.Join(cache, "muster", "files", "1000", "fetch", "sha256")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, strings.Repeat("a", 64))
	if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	found, err := Caches(t.Context(), time.Now().Add(time.Hour), true)
	if err != nil || len(found) != 1 || found[0].Path != path {
		t.Errorf("got %v, %v, want %s", found, err, path)
	}
}

// A folder that a process has closed to all keeps nothing from being removed.
func TestSizeOfClosedFolder(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "file"), make([]byte, 10_000), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "closed"), 0); err != nil {
		t.Fatal(err)
	}
	if n, err := size(dir); err != nil || n < 10_000 {
		t.Errorf("got %d, %v", n, err)
	}
}
