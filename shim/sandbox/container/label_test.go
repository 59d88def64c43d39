package container

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAppArmorProfile(t *testing.T) {
	docker, podman := "docker-default", "containers-default-0.62.2"
	for _, tt := range []struct {
		name  string
		facts apparmorFacts
		named string
		want  string
		err   string
	}{
		{"no AppArmor", apparmorFacts{}, "", "", ""},
		{"no AppArmor, and one is named", apparmorFacts{}, "strict", "", "AppArmor is not enabled on this host"},
		{"none is loaded", apparmorFacts{enabled: true, loaded: map[string]string{"firefox": "enforce"}}, "", "", ""},
		{"Docker's", apparmorFacts{enabled: true, loaded: map[string]string{docker: "enforce", podman: "enforce"}}, "", docker, ""},
		{"Podman's", apparmorFacts{enabled: true, loaded: map[string]string{"containers-default-0.50": "enforce", podman: "enforce"}}, "", podman, ""},
		{"one that only complains", apparmorFacts{enabled: true, loaded: map[string]string{docker: "complain", podman: "enforce"}}, "", podman, ""},
		{"the policy's", apparmorFacts{enabled: true, loaded: map[string]string{docker: "enforce", "strict": "complain"}}, "strict", "strict", ""},
		{"the policy's, which is not loaded", apparmorFacts{enabled: true, loaded: map[string]string{docker: "enforce"}}, "strict", "", "strict is not loaded"},
		{"an ordinary user", apparmorFacts{enabled: true}, "", "", ""},
		{"an ordinary user, and one is named", apparmorFacts{enabled: true}, "strict", "strict", ""},
	} {
		got, err := tt.facts.profile(tt.named)
		if got != tt.want || (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
			t.Errorf("%s: got %q, %v; want %q, %q", tt.name, got, err, tt.want, tt.err)
		}
	}
}

func TestReadAppArmor(t *testing.T) {
	root := t.TempDir()
	put := func(name, text string) {
		t.Helper()
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want := func(want apparmorFacts) {
		t.Helper()
		got, err := readAppArmor(root)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(apparmorFacts{})); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	}
	want(apparmorFacts{})
	put("sys/module/apparmor/parameters/enabled", "Y\n")
	want(apparmorFacts{}) // securityfs is not mounted
	put("sys/kernel/security/apparmor/profiles", "docker-default (enforce)\n/usr/bin/man (complain)\nodd name (x) (unconfined)\n")
	loaded := map[string]string{"docker-default": "enforce", "/usr/bin/man": "complain", "odd name (x)": "unconfined"}
	want(apparmorFacts{enabled: true, loaded: loaded})
	put("sys/module/apparmor/parameters/enabled", "N\n")
	want(apparmorFacts{loaded: loaded})
}
