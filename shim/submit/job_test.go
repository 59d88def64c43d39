package submit

import (
	"strings"
	"testing"

	"github.com/muster-agent/muster/appdef/hbox"
)

// TestCarriedOptions holds what the help of hbox-submit says of an option that has no effect on this host: a launcher
// is asked for it, or it is ignored there too.
func TestCarriedOptions(t *testing.T) {
	for _, o := range hbox.Options() {
		if !o.Idle {
			if o.Remote {
				t.Errorf("%s: marked for launchers alone, but it is not idle", o.Name)
			}
			continue
		}
		unsupported, err := new(Job).carry(hbox.Submission{Carried: map[string]string{strings.TrimPrefix(o.Name, "--"): "1"}})
		if err != nil {
			t.Errorf("%s: %v", o.Name, err)
		}
		if got := len(unsupported) == 0; got != o.Remote {
			t.Errorf("%s: reaches the job: got %t, want %t", o.Name, got, o.Remote)
		}
	}
}
