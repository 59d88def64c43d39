package hadoop

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/muster-agent/muster/tests/need"
)

// Native is a Hadoop with libhdfs.so, as an operator has it, and programs of Python's that load that.
type Native struct {
	// Home is laid out as Hadoop's own archive: HADOOP_HOME.
	Home string
	// Python is the interpreter, Packages what it finds pyarrow and tensorflow-io by: PYTHONPATH.
	Python, Packages string
}

// NeedNative finds what `scripts/lab/libhdfs build` left; root is the repository's.
func NeedNative(t testing.TB, root string) Native {
	t.Helper()
	home, err := where(t, root, "libhdfs", "where")
	if err == nil {
		_, err = os.Stat(filepath.Join(home, "lib/native/libhdfs.so"))
	}
	python := ""
	if err == nil {
		python, err = where(t, root, "python", "where", "tensorflow")
	}
	if err != nil {
		need.Skip(t, "no libhdfs (make it with scripts/lab/libhdfs build): "+err.Error())
	}
	return Native{Home: home, Python: python, Packages: filepath.Join(home, "python")}
}

func where(t testing.TB, root, script string, args ...string) (string, error) {
	script = filepath.Join(root, "scripts/lab", script)
	out, err := exec.CommandContext(t.Context(), script, args...).Output() //nolint:gosec // the repository's own
	return strings.TrimSpace(string(out)), err
}
