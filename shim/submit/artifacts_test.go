package submit

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/muster-agent/muster/appdef"
)

// muster-gpu goes along with an app that asks for GPUs, and that it is not here is said.
func TestHelper(t *testing.T) {
	dir := t.TempDir()
	there := filepath.Join(dir, "muster-gpu")
	if err := os.WriteFile(there, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		gpus             int
		path, want, says string
	}{
		"no GPU":      {0, dir, "", ""},
		"a GPU":       {1, dir, there, ""},
		"not here":    {1, "/nowhere", "", "note: muster-gpu is neither beside this muster nor in PATH"},
		"not needed":  {0, "/nowhere", "", ""},
		"two of them": {2, dir, there, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("PATH", c.path)
			var said strings.Builder
			o := Options{Job: Job{Warn: &said}}
			app := appdef.App{Components: []appdef.Component{{Name: "ps"}, {Name: "worker", Limits: appdef.Limits{GPUs: c.gpus}}}}
			got := ""
			if path := o.helper(&app); path != nil {
				got = *path
			}
			if got != c.want || !strings.HasPrefix(said.String(), c.says) || (c.says == "") != (said.String() == "") {
				t.Errorf("got %q and %q, want %q and %q", got, said.String(), c.want, c.says)
			}
		})
	}
}
