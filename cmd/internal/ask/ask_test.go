package ask

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/muster-agent/muster/registry"
)

// What was asked for is not waited for once the run's embedded registry has ended.
func TestRunEndsMeanwhile(t *testing.T) {
	address, err := registry.ParseAddress("unix:" + filepath.Join(t.TempDir(), "registry.sock"))
	if err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	_, flexed := (&flexing{app: "a", address: address, run: "1"}).await(t.Context(), time.Minute)
	saved := (&saving{app: "a", address: address, run: "1"}).await(t.Context(), time.Minute)
	for _, err := range []error{flexed, saved} {
		if err == nil || !strings.Contains(err.Error(), "a: its run ended before") {
			t.Errorf("got %v", err)
		}
	}
	saving := &saving{app: "a", address: address, run: "1", save: &registry.Save{}}
	if err := saving.await(t.Context(), time.Minute); err != nil {
		t.Errorf("begun: got %v", err)
	}
	if took := time.Since(begun); took > 30*time.Second {
		t.Errorf("took %s", took)
	}
}
