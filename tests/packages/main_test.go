// Package packages tries what the product does with packages of strangers, by the program itself.
package packages

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/muster-agent/muster/tests/binary"
	"github.com/muster-agent/muster/tests/folder"
)

var muster string

func TestMain(m *testing.M) {
	os.Exit(binary.Main(func(built string) int {
		muster = built
		return m.Run()
	}))
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// home is a folder of its own for a run's caches and state.
func home(t *testing.T) []string {
	t.Helper()
	dir := folder.Temp(t, "mp-")
	return append(os.Environ(), "HOME="+dir, "XDG_CACHE_HOME="+filepath.Join(dir, "cache"), "XDG_STATE_HOME="+filepath.Join(dir, "state"),
		"XDG_RUNTIME_DIR="+dir, "TMPDIR="+dir, "MUSTER_AGENT_STATE_DIR="+filepath.Join(dir, "run"))
}

// run is the program's output and exit code.
func run(t *testing.T, env []string, dir string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	c := exec.CommandContext(t.Context(), muster, args...)
	c.Env, c.Dir = env, dir
	var out, err bytes.Buffer
	c.Stdout, c.Stderr = &out, &err
	var exit *exec.ExitError
	switch failed := c.Run(); {
	case errors.As(failed, &exit):
		code = exit.ExitCode()
	case failed != nil:
		t.Fatal(failed)
	}
	return out.String(), err.String(), code
}

// write puts a package's files into a folder.
func write(t *testing.T, dir string) {
	t.Helper()
	for name, text := range app() {
		path := filepath.Join(dir, name)
		must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must(t, os.WriteFile(path, []byte(text), 0o600))
	}
}

// app is a package that says hello.
func app() map[string]string {
	schema := `"schema": "http://example.org/specification/v2.0.0"`
	return map[string]string{
		"metainfo.json":   `{"schemaVersion": "2.1", "application": {"name": "hello", "version": "1", "components": [{"name": "worker"}]}}`,
		"appConfig.json":  fmt.Sprintf(`{%s, "global": {"muster.command": "echo hello"}}`, schema),
		"resources.json":  fmt.Sprintf(`{%s, "components": {"worker": {"yarn.role.priority": "1", "yarn.component.instances": "1"}}}`, schema),
		"package/files/x": strings.Repeat("x", 100),
	}
}
