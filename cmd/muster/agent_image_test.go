package main

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/muster-agent/muster/packages/image"
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/plan"
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

// A user that is not there is the fault of who named it.
func TestUnknownUserInImage(t *testing.T) {
	dir := t.TempDir()
	err := errors.Join(os.Mkdir(filepath.Join(dir, "etc"), 0o755), os.WriteFile(filepath.Join(dir, "etc/passwd"), []byte("app:x:7:8::/srv:\n"), 0o644))
	if err != nil {
		t.Fatal(err)
	}
	a := &agent{log: slog.New(slog.NewTextHandler(t.Output(), nil))}
	a.image.Image = &image.Image{Ref: "lab/app:1", Layers: []string{dir}, Config: image.Config{User: "ghost"}}
	for user, want := range map[string]registry.Class{"ghost": registry.ClassImage, "nobody": registry.ClassDefinition, "app": ""} {
		got, err := a.lookUpUser(plan.Plan{Root: plan.Root{Kind: plan.RootImage}, Process: plan.Process{User: user}})
		switch {
		case want == "" && (err != nil || got.UID != 7 || got.Home != "/srv"):
			t.Errorf("%s: got %+v, %v", user, got, err)
		case want != "" && (err == nil || stageClass(err) != want):
			t.Errorf("%s: got %v, want class %s", user, err, want)
		}
	}
}
