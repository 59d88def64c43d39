package files

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/muster-agent/muster/shim/data/transfer"
	"github.com/muster-agent/muster/shim/plan"
	"github.com/muster-agent/muster/shim/policy"
	"github.com/muster-agent/muster/shim/store"
	"github.com/muster-agent/muster/tests/need"
)

// A process that is root in a container lays links where it may write. Its agent, which is root on the host, follows
// them no further than the process itself could.
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
	a := Admission{Work: work, Root: plan.RootReadOnly}
	opened, dir, err := a.Open(filepath.Join(work, "store/in"), false)
	if err != nil {
		t.Fatal(err)
	}
	for name, ok := range map[string]bool{"own": true, "near": true, "far": false, "up": false, "../../../etc/hostname": false} {
		content, err := opened.Open(t.Context(), filepath.Join(dir, name), store.Position{})
		if (err == nil) != ok {
			t.Errorf("open %s: got %v, want it opened: %t", name, err, ok)
		}
		if err == nil && content.Close() != nil {
			t.Error("close")
		}
	}
	if _, err := (transfer.Listing{Store: opened}).List(t.Context(), filepath.Join(dir, "{x,../../../../../../../../../"+outside+"}/*")); err == nil {
		t.Error("a pattern leads out")
	}
	out, place, err := a.Open(filepath.Join(work, "store/out"), true)
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
	a := Admission{Work: t.TempDir(), Root: plan.RootReadOnly}
	for _, path := range []string{"/proc/1/environ", "/run", "/dev/null", "/tmp/of-somebody"} {
		if _, _, err := a.Open(path, false); err == nil {
			t.Errorf("%s is opened", path)
		}
	}
	opened, path, err := a.Open("/etc/hostname", false)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := opened.Stat(t.Context(), path); err != nil {
		t.Error(err)
	}
	if _, err := opened.Stat(t.Context(), "/etc/../run"); err == nil {
		t.Error("beside the folder")
	}
}

// What a definition may name of the host does not depend on links that somebody has laid.
func TestAdmitted(t *testing.T) {
	if os.Geteuid() != 0 {
		need.Skip(t, "only an agent that is root could do more than its process")
	}
	work, outside := t.TempDir(), t.TempDir()
	if err := os.MkdirAll(filepath.Join(work, "store"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(work, "store", "link")); err != nil {
		t.Fatal(err)
	}
	const image, readOnly, host = plan.RootImage, plan.RootReadOnly, plan.RootHost
	for _, tt := range []struct {
		name  string
		root  string
		path  string
		write bool
		given Admission
		ok    bool
	}{
		{"its own store", image, filepath.Join(work, "store", "x"), true, Admission{}, true},
		{"a link out of it", image, filepath.Join(work, "store", "link", "x"), true, Admission{}, false},
		{"muster's own", host, filepath.Join(work, "package", "x"), true, Admission{}, false},
		{"muster's own mark", host, filepath.Join(work, ".outputs-worker-0"), false, Admission{}, false},
		{"the work folder", host, work, false, Admission{}, false},
		{"the host, from an image", image, "/etc/shadow", false, Admission{}, false},
		{"the host, which it could read", readOnly, "/etc/shadow", false, Admission{}, true},
		{"the host, which it could not write", readOnly, "/etc/cron.d", true, Admission{}, false},
		{"the host's root", host, "/etc/cron.d", true, Admission{}, false},
		{"the host's root, to be read", host, "/etc/cron.d", false, Admission{}, true},
		{"as a user", image, outside, true, Admission{User: As(&plan.UserFacts{UID: 65534})}, false},
		{"as a user, to be read", image, outside, false, Admission{User: As(&plan.UserFacts{UID: 65534})}, true},
		{"a root of the policy", host, filepath.Join(outside, "x"), true, Admission{Policy: policy.Policy{Roots: []policy.Root{{Path: outside}}}}, true},
		{"a root to be read alone", host, filepath.Join(outside, "x"), true, Admission{Policy: policy.Policy{Roots: []policy.Root{{Path: outside, ReadOnly: true}}}}, false},
		{"in the named filesystem", image, filepath.Join(outside, "x"), true, Admission{Default: outside}, true},
		{"beside the named filesystem", image, outside + "x", true, Admission{Default: outside}, false},
		{"what the operator mounts", image, filepath.Join(outside, "x"), true, Admission{Policy: policy.Policy{Mounts: []policy.Mount{{Path: outside}}}}, true},
		{"what the operator mounts to be read", image, filepath.Join(outside, "x"), true, Admission{Policy: policy.Policy{Mounts: []policy.Mount{{Path: outside, ReadOnly: true}}}}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := tt.given
			a.Work, a.Root = work, tt.root
			if _, err := a.admit(tt.path, tt.write); (err == nil) != tt.ok {
				t.Errorf("got %v, want it admitted: %t", err, tt.ok)
			}
		})
	}
}

// What the operator lets be read alone is named as that, not as missing from the policy.
func TestReadOnlyInThePolicy(t *testing.T) {
	need.Root(t)
	dir := t.TempDir()
	for field, p := range map[string]policy.Policy{
		"roots[0]":  {Roots: []policy.Root{{Path: dir, ReadOnly: true}}},
		"mounts[0]": {Mounts: []policy.Mount{{Path: dir, To: dir, ReadOnly: true}}},
	} {
		p.File = "p.json"
		err := Admission{Work: t.TempDir(), Policy: p}.Write(filepath.Join(dir, "out"))
		if want := "p.json has it in " + field + " as read_only"; err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q in it", err, want)
		}
	}
}
