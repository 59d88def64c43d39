package doctor

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/muster-agent/muster/shim/launcher"
	"github.com/muster-agent/muster/shim/policy"
	"github.com/muster-agent/muster/shim/prepare"
	"github.com/muster-agent/muster/tests/need"
)

// Whose ids processes have, and images' files, is told by the policy that the command line names.
func TestIDsByTheNamedPolicy(t *testing.T) {
	if !prepare.RootOfHost() {
		need.Skip(t, "only an agent that is root of the host gives its processes other ids")
	}
	for rules, want := range map[string]struct {
		ok   bool
		says string
	}{
		`{"version": 1, "userns": "host"}`:                       {true, "needs a muster.user"},
		`{"version": 1, "userns": "host", "refuse_root": false}`: {false, "is root of this host"},
	} {
		path := filepath.Join(t.TempDir(), "policy.json")
		if err := os.WriteFile(path, []byte(rules), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := checkIDs(ruled(t, path)); got.OK != want.ok || !strings.Contains(got.Found, want.says) {
			t.Errorf("%s: got %+v", rules, got)
		}
		if got := imageOwners(t.TempDir(), ruled(t, path)); got != "" {
			t.Errorf("%s: images: got %q", rules, got)
		}
	}
}

// The ids of apps are one host's: on a filesystem that hosts share they are warned of.
func TestNetworkFiles(t *testing.T) {
	if !prepare.RootOfHost() {
		need.Skip(t, "only an agent that is root of the host gives its processes other ids")
	}
	magics := map[string]uint32{"/srv/nfs": 0x6969, "/srv/lustre": 0x0bd00bd0, "/srv/gpfs": 0x47504653, "/srv/fuse": 0x65735546}
	for rules, want := range map[string]struct {
		ok   bool
		says string
	}{
		`{"version": 1}`: {true, "none"},
		`{"version": 1, "mounts": [{"path": "/srv/fuse"}]}`:                                  {true, "none"},
		`{"version": 1, "mounts": [{"path": "/srv/nfs"}]}`:                                   {false, "/srv/nfs (NFS): each host"},
		`{"version": 1, "roots": [{"path": "/srv/lustre"}]}`:                                 {false, "/srv/lustre (Lustre): each host"},
		`{"version": 1, "mounts": [{"path": "/srv/nfs"}], "roots": [{"path": "/srv/gpfs"}]}`: {false, "/srv/nfs (NFS), /srv/gpfs (GPFS)"},
		`{"version": 1, "userns": "host", "roots": [{"path": "/srv/nfs"}]}`:                  {true, "no subordinate"},
	} {
		path := filepath.Join(t.TempDir(), "policy.json")
		if err := os.WriteFile(path, []byte(rules), 0o600); err != nil {
			t.Fatal(err)
		}
		got := checkNetworkFiles(launcher.Found{}, ruled(t, path), func(dir string) uint32 { return magics[dir] })
		if got.OK != want.ok || !strings.Contains(got.Found, want.says) || want.ok != (got.Remedy == "") {
			t.Errorf("%s: got %+v", rules, got)
		}
	}
	t.Setenv("XDG_STATE_HOME", "/srv/nfs")
	got := checkNetworkFiles(launcher.Found{}, Options{}, func(string) uint32 { return 0x6969 })
	if got.OK || !strings.Contains(got.Found, "(NFS)") {
		t.Errorf("the work folder: got %+v", got)
	}
	if magicOf("/proc") != 0x9fa0 {
		t.Errorf("/proc: got %#x", magicOf("/proc"))
	}
}

// ruled are the options by which a policy holds.
func ruled(t *testing.T, path string) Options {
	t.Helper()
	p, err := policy.Read(path, true)
	if err != nil {
		t.Fatal(err)
	}
	return Options{Policy: p}
}
