package render_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/muster-agent/muster/tests/need"
)

// scored is the last line of `systemd-analyze security`.
var scored = regexp.MustCompile(`(?m)^.*Overall exposure level for .*: ([0-9.]+) `)

// TestSystemd has systemd itself read the units: no word of them may be unknown to it.
func TestSystemd(t *testing.T) {
	need.Root(t)
	for app, dir := range written(t, "systemd.units") {
		t.Run(app, func(t *testing.T) {
			units, err := filepath.Glob(filepath.Join(dir, "*.[st]*"))
			if err != nil {
				t.Fatal(err)
			}
			var files []string
			for _, unit := range units {
				if !strings.HasSuffix(unit, ".d") {
					files = append(files, unit)
				}
			}
			if len(files) != 2 {
				t.Fatalf("want a template and a target, got %v", files)
			}
			// A drop-in is read with its unit only: it takes the template's part.
			drops, err := filepath.Glob(filepath.Join(dir, "*.d", "*.conf"))
			if err != nil || len(drops) == 0 {
				t.Fatalf("no limits: %v", err)
			}
			template := files[1]
			if !strings.HasSuffix(template, "@.service") {
				template = files[0]
			}
			text, err := os.ReadFile(template)
			if err != nil {
				t.Fatal(err)
			}
			for _, drop := range drops {
				more, err := os.ReadFile(drop)
				if err != nil {
					t.Fatal(err)
				}
				text = append(append(text, '\n'), more...)
			}
			if err := os.WriteFile(template, text, 0o644); err != nil {
				t.Fatal(err)
			}
			out, bad, err := runs(t, append([]string{filepath.Join(labs, "systemd"), "analyze", "verify", "--man=no"}, files...)...)
			if err != nil || out+bad != "" {
				t.Errorf("verify: %v\n%s%s", err, out, bad)
			}
			out, bad, err = runs(t, filepath.Join(labs, "systemd"), "analyze", "security", "--no-pager", template)
			m := scored.FindStringSubmatch(out)
			if err != nil || m == nil {
				t.Fatalf("security: %v\n%s%s", err, out, bad)
			}
			t.Log(strings.TrimSpace(m[0]))
			score, err := strconv.ParseFloat(m[1], 64)
			if privileged := strings.Contains(string(text), "; privileged: "); err != nil || !privileged && score > 4 {
				t.Errorf("exposure: got %s, want at most 4.0 of an unprivileged unit", m[1])
			}
		})
	}
}
