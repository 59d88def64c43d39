// Package promtool runs Prometheus' promtool, of Debian's package prometheus, for tests.
package promtool

import (
	"io"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/muster-agent/muster/tests/need"
)

// Run runs it in a folder and returns what it printed. An error of it is the test's.
func Run(t testing.TB, dir string, in io.Reader, args ...string) string {
	t.Helper()
	_, here, _, _ := runtime.Caller(0)
	lab := filepath.Join(filepath.Dir(here), "../../../scripts/lab/debian")
	folder, err := exec.CommandContext(t.Context(), lab, "prometheus", "prometheus").Output()
	if err != nil {
		need.Skip(t, "no promtool (get it with scripts/lab/debian prometheus prometheus): "+err.Error())
	}
	tool := exec.CommandContext(t.Context(), filepath.Join(strings.TrimSpace(string(folder)), "usr/bin/promtool"), args...)
	tool.Dir, tool.Stdin = dir, in
	out, err := tool.CombinedOutput()
	if err != nil {
		t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}
