package cache

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/muster-agent/muster/shim/store/schemes"
)

func TestClean(t *testing.T) {
	dir, from := t.TempDir(), t.TempDir()
	begun := time.Now()
	var files []File
	for i, name := range []string{"a", "b", "c", "d"} {
		path := filepath.Join(from, name)
		must(t, os.WriteFile(path, noise(1000, byte(i)), 0o600))
		f, err := Fetch(t.Context(), Request{Stores: schemes.Local(), URL: path, CacheDir: dir})
		must(t, err)
		files = append(files, f)
		used := begun.Add(time.Duration(i-10) * time.Hour)
		must(t, os.Chtimes(filepath.Join(dir, "fetch", "locks", "sha256-"+f.SHA256), used, used))
	}
	partial := filepath.Join(dir, "fetch", "partial")
	old := begun.Add(-24 * time.Hour)
	for _, name := range []string{key("x"), key("x") + ".json", key("busy"), ".new-1"} {
		must(t, os.WriteFile(filepath.Join(partial, name), []byte("part"), 0o600))
		must(t, os.Chtimes(filepath.Join(partial, name), old, old))
	}
	must(t, os.WriteFile(filepath.Join(partial, key("new")), []byte("part"), 0o600))
	c, err := openCache(dir)
	must(t, err)
	busy, err := c.tryLock("url-"+key("busy"), 2) // LOCK_EX
	must(t, err)

	gone := func(keep Keep) string {
		t.Helper()
		dry := keep
		dry.Dry = true
		would, err := Clean(t.Context(), dir, dry)
		must(t, err)
		removed, err := Clean(t.Context(), dir, keep)
		must(t, err)
		if !slices.Equal(would, removed) {
			t.Errorf("dry: got %v, want %v", would, removed)
		}
		var names strings.Builder
		for _, r := range removed {
			for i, f := range files {
				if r.SHA256 == f.SHA256 && r.Bytes == 1000 {
					names.WriteByte("abcd"[i])
				}
			}
		}
		return names.String()
	}
	if got := gone(Keep{Since: begun.Add(time.Hour)}); got != "" {
		t.Errorf("all held: got %q removed, want none", got)
	}
	if got := contentsOf(t, dir, "partial"); len(got) != 1 || got[0] != key("busy") {
		t.Errorf("partial: got %v, want what is held", got)
	}
	for _, f := range files {
		must(t, f.Close())
	}
	must(t, busy.Release())
	if got := gone(Keep{}); got != "" {
		t.Errorf("nothing asked: got %q removed, want none", got)
	}
	if got := gone(Keep{Since: begun.Add(-9*time.Hour - time.Minute)}); got != "a" {
		t.Errorf("by time: got %q removed, want a", got)
	}
	if got := gone(Keep{Bytes: 2000}); got != "b" {
		t.Errorf("by bytes: got %q removed, want b", got)
	}
	if got := contentsOf(t, dir, "index"); len(got) != 2 {
		t.Errorf("index: got %v, want those of c and d", got)
	}
	f, err := Fetch(t.Context(), Request{Stores: schemes.Local(), URL: filepath.Join(from, "c"), CacheDir: dir})
	must(t, err)
	if !f.Cached {
		t.Error("c: got it loaded, want it from the cache")
	}
	must(t, f.Close())
	if got := gone(Keep{Bytes: 1000}); got != "d" { // c was used after it
		t.Errorf("by bytes: got %q removed, want d", got)
	}
	if removed, err := Clean(t.Context(), t.TempDir(), Keep{Bytes: 1}); err != nil || removed != nil {
		t.Errorf("no cache: got %v, %v", removed, err)
	}
}

func TestCacheOfAnotherIsRefused(t *testing.T) {
	dir := t.TempDir()
	open := filepath.Join(dir, "open")
	must(t, os.Mkdir(open, 0o700))
	must(t, os.Chmod(open, 0o777))
	_, err := Fetch(t.Context(), Request{Stores: schemes.Local(), URL: "/etc/hostname", CacheDir: filepath.Join(open, "cache")})
	if err == nil || !strings.Contains(err.Error(), "others may not write there") || !strings.Contains(err.Error(), "XDG_CACHE_HOME") {
		t.Errorf("got %v, want it refused with a remedy", err)
	}
}

// A dry run makes no lock file, whose time would be that of a use.
func TestDryCleanUsesNothing(t *testing.T) {
	dir := t.TempDir()
	c, err := openCache(dir)
	must(t, err)
	name := strings.Repeat("a", 64)
	old := time.Now().Add(-24 * time.Hour)
	must(t, os.WriteFile(c.contentPath(name), []byte("x"), 0o600))
	must(t, os.Chtimes(c.contentPath(name), old, old))
	for _, dry := range []bool{true, true, false} {
		found, err := Clean(t.Context(), dir, Keep{Since: time.Now().Add(-time.Hour), Dry: dry})
		if err != nil || len(found) != 1 {
			t.Errorf("dry %t: got %v, %v, want the file", dry, found, err)
		}
	}
}
