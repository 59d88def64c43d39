package nomad

import (
	"strings"
	"testing"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/render"
)

// What a store holds is checked by Nomad's clients too: its name is its digest.
func TestNomadChecksWhatItFetches(t *testing.T) {
	sum := strings.Repeat("0a", 32)
	app := appdef.App{Name: "a", Components: []appdef.Component{{Name: "worker", Instances: 1}}}
	for _, tt := range []struct{ format, binary, want string }{
		{"json", "https://web/m/objects/" + sum + "-muster", `"checksum": "sha256:` + sum + `"`},
		{"hcl", "https://web/m/objects/" + sum + "-muster", "options {\n          checksum = \"sha256:" + sum + "\""},
		{"json", "https://web/m/muster#sha256=" + sum, `"checksum": "sha256:` + sum + `"`},
		{"json", "https://web/m/muster", ""},
		{"json", "https://web/" + sum, ""},
		{"json", "https://web/m/muster#sha256=0a", ""},
	} {
		job, err := render.Render([]render.Launcher{Jobs}, "nomad", app, render.Options{Format: tt.format, AppID: "a", Run: "1", App: "catalog:a", Binary: tt.binary, Registry: registry.DefaultAddress()})
		if tt.want == "" {
			if err == nil || !strings.Contains(err.Error(), "#sha256=") {
				t.Errorf("%s: got %v, want a refusal that asks for a digest", tt.binary, err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		text := job.Files[0].Text
		if !strings.Contains(text, tt.want) || strings.Contains(text, "checksum") != (tt.want != "") {
			t.Errorf("%s, %s: got\n%s\nwant %s", tt.format, tt.binary, text, tt.want)
		}
	}
}
