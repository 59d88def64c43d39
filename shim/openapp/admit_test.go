package openapp

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/muster-agent/muster/packages"
	"github.com/muster-agent/muster/packages/sign"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/policy"
)

// TestAdmit: the bytes that were opened must be the bytes that were signed, whatever lies there by now.
func TestAdmit(t *testing.T) {
	dir := t.TempDir()
	public, err := sign.Generate(filepath.Join(dir, "release"), "")
	if err != nil {
		t.Fatal(err)
	}
	secret, err := sign.OpenSecretKey(filepath.Join(dir, "release.key"), nil)
	if err != nil {
		t.Fatal(err)
	}
	app := filepath.Join(dir, "app")
	if err := os.Mkdir(app, 0o755); err != nil {
		t.Fatal(err)
	}
	write := func(path, text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(filepath.Join(app, "metainfo.json"), "{}")
	file := filepath.Join(dir, "app.zip")
	if _, err := packages.Pack(app, file, packages.PackOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := sign.Sign(file, secret, ""); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "policy.json")
	write(path, `{"version":1,"packages":{"require_signature":true,"keys":["`+filepath.Join(dir, "release.pub")+`"]}}`)
	rules, err := policy.Read(path, true)
	if err != nil {
		t.Fatal(err)
	}
	if ids := keyIDs(rules); ids != public.ID() {
		t.Errorf("keys of the policy: got %s, want %s", ids, public.ID())
	}
	opened := openFor(t, file)
	if err := admit(rules, Source{Package: opened, Signature: file + sign.Ending}); err != nil {
		t.Errorf("a signed package: got %v", err)
	}
	if err := admit(rules, Source{Package: &packages.Package{FS: os.DirFS(app), Name: "app"}}); err != nil {
		t.Errorf("one of the catalog: got %v", err)
	}
	if err := admit(policy.Policy{}, Source{Package: openFor(t, app)}); err != nil {
		t.Errorf("without a policy: got %v", err)
	}
	refused := func(name, want string, pkg *packages.Package, signature string) {
		t.Helper()
		err := admit(rules, Source{Package: pkg, Signature: signature})
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path) || exit.CodeOf(err) != exit.Forbidden {
			t.Errorf("%s: got %v, want 77 with %s", name, err, want)
		}
	}
	refused("a folder", "nobody can sign", openFor(t, app), app+sign.Ending)
	refused("no signature", "not signed", opened, filepath.Join(dir, "none"))
	swapped := *opened
	swapped.Digest = strings.Repeat("0", 64)
	refused("another file at its place", "changed while it was opened", &swapped, file+sign.Ending)
}

func openFor(t *testing.T, path string) *packages.Package {
	t.Helper()
	p, err := packages.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}
