package doctor

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

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
		if got := checkIDs(path); got.OK != want.ok || !strings.Contains(got.Found, want.says) {
			t.Errorf("%s: got %+v", rules, got)
		}
		if got := imageOwners(t.TempDir(), path); got != "" {
			t.Errorf("%s: images: got %q", rules, got)
		}
	}
}
