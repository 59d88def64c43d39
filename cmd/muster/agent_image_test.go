package main

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"
)

// The cache is where the manual says, and without a home in nobody else's folder.
func TestCacheDir(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", "")
	t.Setenv("HOME", "/home/ann")
	t.Setenv("TMPDIR", "/scratch")
	if got := cacheDir(); got != "/home/ann/.cache/muster" {
		t.Errorf("with a home: got %s", got)
	}
	t.Setenv("HOME", "")
	if got, want := cacheDir(), "/scratch/muster-cache-"+strconv.Itoa(os.Geteuid()); got != want {
		t.Errorf("without a home: got %s, want %s", got, want)
	}
	t.Setenv("XDG_CACHE_HOME", "/var/cache/ann")
	if got := cacheDir(); got != filepath.Join("/var/cache/ann", "muster") {
		t.Errorf("named: got %s", got)
	}
}
