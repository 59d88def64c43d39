package lint

import (
	"os/exec"
	"testing"

	"github.com/muster-agent/muster/packages"
	"github.com/muster-agent/muster/packages/catalog"
	"github.com/muster-agent/muster/tests/need"
)

// TestCatalog holds what we ship to what we ask of others: no error, no warning, no advice, nothing to mend.
func TestCatalog(t *testing.T) {
	if _, err := exec.LookPath("python3"); err != nil {
		need.Skip(t, "needs a Python 3")
	}
	for _, name := range catalog.Names() {
		t.Run(name, func(t *testing.T) {
			files, err := catalog.Open(name)
			if err != nil {
				t.Fatal(err)
			}
			result, err := Run(t.Context(), &packages.Package{FS: files, Name: name}, false)
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range result.Problems {
				t.Errorf("%s: %s", p.Severity, p)
			}
			for _, f := range result.Fixes {
				t.Errorf("--fix mends %s:\n%s", f.File, f.Diff)
			}
		})
	}
}
