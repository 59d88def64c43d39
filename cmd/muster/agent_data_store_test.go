package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/muster-agent/muster/packages/fetch"
	"github.com/muster-agent/muster/shim/plan"
	"github.com/muster-agent/muster/shim/stage"
	"github.com/muster-agent/muster/tests/need"
)

// A process that is root in a container lays links where it may write. Its agent, which is root on the host, follows them no
// further than the process itself could.
func TestLinksOfAContainer(t *testing.T) {
	need.Root(t)
	work, outside := t.TempDir(), t.TempDir()
	secret := filepath.Join(outside, "secret")
	for _, dir := range []string{"store/in", "store/out/_temporary/app@1"} {
		if err := os.MkdirAll(filepath.Join(work, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for path, text := range map[string]string{secret: "root's", filepath.Join(work, "store/in/own"): "own"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	up, err := filepath.Rel(filepath.Join(work, "store/in"), secret)
	if err != nil {
		t.Fatal(err)
	}
	for link, to := range map[string]string{
		"store/in/far": secret, "store/in/up": up, "store/in/near": "own", "store/out/_temporary/app@1/worker-0": outside,
	} {
		if err := os.Symlink(to, filepath.Join(work, link)); err != nil {
			t.Fatal(err)
		}
	}
	a := &agent{workDir: work}
	p := plan.Plan{Root: plan.Root{Kind: plan.RootReadOnly}}
	store, dir, err := a.openStore(t.Context(), p, "file:"+filepath.Join(work, "store/in"), false)
	if err != nil {
		t.Fatal(err)
	}
	for name, ok := range map[string]bool{"own": true, "near": true, "far": false, "up": false, "../../../etc/hostname": false} {
		content, err := store.Open(t.Context(), filepath.Join(dir, name), fetch.Position{})
		if (err == nil) != ok {
			t.Errorf("open %s: got %v, want it opened: %t", name, err, ok)
		}
		if err == nil && content.Close() != nil {
			t.Error("close")
		}
	}
	if _, err := (stage.Listing{Store: store}).List(t.Context(), filepath.Join(dir, "{x,../../../../../../../../../"+outside+"}/*")); err == nil {
		t.Error("a pattern leads out")
	}
	out, place, err := a.openStore(t.Context(), p, filepath.Join(work, "store/out"), true)
	if err != nil {
		t.Fatal(err)
	}
	half := filepath.Join(place, "_temporary/app@1/worker-0")
	w, err := out.Create(t.Context(), filepath.Join(half, "cron"))
	if err == nil {
		t.Errorf("a file is written through a link: %v", w.Close())
	}
	if err := out.MkdirAll(t.Context(), filepath.Join(half, "dir")); err == nil {
		t.Error("a folder is made through a link")
	}
	if err := out.Remove(t.Context(), filepath.Join(half, "secret")); err == nil {
		t.Error("a file is removed through a link")
	}
	if err := out.Rename(t.Context(), filepath.Join(half, "secret"), filepath.Join(place, "mine")); err == nil {
		t.Error("a file is taken through a link")
	}
	if err := out.Remove(t.Context(), half); err != nil { // the link itself
		t.Error(err)
	}
	if text, err := os.ReadFile(secret); err != nil || string(text) != "root's" {
		t.Errorf("the host's file: got %q, %v", text, err)
	}
	if entries, err := os.ReadDir(outside); err != nil || len(entries) != 1 {
		t.Errorf("the host's folder: got %v, %v", entries, err)
	}
}

// Of the host's own folders that a container covers with its own nothing is read for it, nor through a link.
func TestReachOfReading(t *testing.T) {
	need.Root(t)
	a := &agent{workDir: t.TempDir()}
	p := plan.Plan{Root: plan.Root{Kind: plan.RootReadOnly}}
	for _, url := range []string{"/proc/1/environ", "/run", "file:/dev/null", "/tmp/of-somebody"} {
		if _, _, err := a.openStore(t.Context(), p, url, false); err == nil {
			t.Errorf("%s is opened", url)
		}
	}
	store, path, err := a.openStore(t.Context(), p, "/etc/hostname", false)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.Stat(t.Context(), path); err != nil {
		t.Error(err)
	}
	if _, err := store.Stat(t.Context(), "/etc/../run"); err == nil {
		t.Error("beside the folder")
	}
}
