package manager

import (
	"strings"
	"testing"

	"github.com/muster-agent/muster/registry"
)

// TestAttackStampOfTheDirective: a stamp names a folder beside the outputs, and whoever may write the app's keys writes
// it. One that leads elsewhere saves nothing.
func TestAttackStampOfTheDirective(t *testing.T) {
	for _, stamp := range []string{"", "/../../../etc/cron.d", "..", "a/b", "a\x00", strings.Repeat("a", 65)} {
		if got := new(Manager).saveInTurn(registry.Save{Seq: 3, Stamp: stamp}); got.Seq != 3 || got.Failed == "" {
			t.Errorf("stamp %q: %+v, want a refusal", stamp, got)
		}
	}
	if !plainStamp.MatchString("20260102_030405") {
		t.Error("the stamp of a conductor is refused")
	}
}
