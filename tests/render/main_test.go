// Package render_test holds the job files that `muster render` writes to those that read them: Nomad, systemd, bash, and the
// published schemas of Kubernetes and of JobSet. The files are the golden ones of shim/render, which its own tests hold to
// the code. Set MUSTER_BINARY to try a binary that is there already: units are checked with it in its place.
package render_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/muster-agent/muster/tests/binary"
)

// muster is the binary that units name. Set before the first test, never after.
var muster string

func TestMain(m *testing.M) {
	os.Exit(binary.Main(func(built string) int {
		muster = built
		return m.Run()
	}))
}

const (
	golden   = "../../shim/render/testdata"
	labs     = "../../scripts/lab"
	watchdog = 2 * time.Minute // builds of the lab apart, which scripts/setup makes
)

// written lays out the files of each golden job of a launcher and format, in a folder of its own by the app's name.
func written(t *testing.T, job string) map[string]string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(golden, "*."+job+".golden"))
	if err != nil || len(found) < 3 {
		t.Fatalf("golden jobs of %s: got %v, %v", job, found, err)
	}
	dirs := map[string]string{}
	for _, name := range found {
		archive, err := txtar.ParseFile(name)
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		for _, file := range archive.Files {
			path := filepath.Join(dir, file.Name)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, file.Data, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		app, _, _ := strings.Cut(filepath.Base(name), ".")
		dirs[app] = dir
	}
	return dirs
}

// only is the one file in a folder.
func only(t *testing.T, dir string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(found) != 1 {
		t.Fatalf("want one file, got %v, %v", found, err)
	}
	return found[0]
}

// runs gives what a program says on stdout and stderr.
func runs(t *testing.T, argv ...string) (stdout, stderr string, err error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), "MUSTER_BINARY="+muster)
	var out, bad bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &bad
	dog := time.AfterFunc(watchdog, func() { _ = cmd.Cancel() })
	defer dog.Stop()
	err = cmd.Run()
	return out.String(), bad.String(), err
}
