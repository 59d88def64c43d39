package ownfolder

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/muster-agent/muster/tests/need"
)

// What another user has made, may write to, or could put another in the place of is neither trusted nor root's own.
func TestTrustedAndOwn(t *testing.T) {
	need.Root(t)
	top := filepath.Join(t.TempDir(), "top")
	dir := filepath.Join(top, "app")
	path := filepath.Join(dir, "worker-0.json")
	if err := errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(path, nil, 0o644)); err != nil {
		t.Fatal(err)
	}
	good := func() error { return nil }
	for name, tt := range map[string]struct {
		change, undo func() error
		trusted, own bool
	}{
		"as it was":             {good, good, true, true},
		"file of another":       {func() error { return os.Chown(path, 4242, 0) }, func() error { return os.Chown(path, 0, 0) }, false, false},
		"folder of another":     {func() error { return os.Chown(dir, 4242, 0) }, func() error { return os.Chown(dir, 0, 0) }, false, false},
		"file that all write":   {func() error { return os.Chmod(path, 0o666) }, func() error { return os.Chmod(path, 0o644) }, false, false},
		"folder that all write": {func() error { return os.Chmod(dir, 0o777) }, func() error { return os.Chmod(dir, 0o755) }, false, false},
		"folder for all, each its own": {
			func() error { return os.Chmod(dir, 0o777|os.ModeSticky) }, func() error { return os.Chmod(dir, 0o755) }, true, true,
		},
		"root's link": {
			func() error { return errors.Join(os.Rename(path, path+".real"), os.Symlink(path+".real", path)) },
			func() error { return os.Rename(path+".real", path) }, true, false,
		},
		"nothing there": {func() error { return os.Rename(path, path+".off") }, func() error { return os.Rename(path+".off", path) }, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			if err := tt.change(); err != nil {
				t.Fatal(err)
			}
			if err := Trusted(path, 0); (err == nil) != tt.trusted {
				t.Errorf("Trusted: %v, want trusted: %v", err, tt.trusted)
			}
			if err := Own(top, path); (err == nil) != tt.own {
				t.Errorf("Own: %v, want own: %v", err, tt.own)
			}
			if err := tt.undo(); err != nil {
				t.Fatal(err)
			}
		})
	}
}
