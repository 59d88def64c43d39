package tensorflow_test

import (
	"archive/zip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/muster-agent/muster/tests/need"
)

const (
	catalogFolder   = checkout + "/packages/catalog/tensorflow"
	publishedFolder = checkout + "/tests/packages/tensorflow-published"
	seedFolder      = checkout + "/tests/packages/tensorflow-seed"
	rolesFolder     = "testdata/roles"
	programs        = checkout + "/tests/programs"
)

// copied is a folder of the test's own with the package's files and further scripts beside them, as
// users make it who bring a script.
func copied(t *testing.T, folder string, scripts ...string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), filepath.Base(folder))
	if err := os.CopyFS(to, os.DirFS(folder)); err != nil {
		t.Fatal(err)
	}
	files := filepath.Join(to, "package", "files")
	if err := os.MkdirAll(files, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, script := range scripts {
		text, err := os.ReadFile(filepath.Join(programs, script))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(files, script), text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return to
}

// zipped is a folder as an archive.
func zipped(t *testing.T, folder string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), filepath.Base(folder)+".zip")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	w := zip.NewWriter(file)
	if err := w.AddFS(os.DirFS(folder)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// python3 skips where there is no Python for the programs that need no TensorFlow.
func python3(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("python3"); err != nil {
		need.Skip(t, "needs python3")
	}
}

// tensorflowPython is the interpreter that `scripts/lab/python tensorflow` made, or the one that
// MUSTER_TENSORFLOW names.
func tensorflowPython(t *testing.T) string {
	t.Helper()
	path := os.Getenv("MUSTER_TENSORFLOW")
	if path == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			need.Skip(t, err.Error())
		}
		list, err := os.ReadFile(filepath.Join(checkout, "tests/servers/tensorflow/requirements.txt"))
		if err != nil {
			t.Fatal(err)
		}
		version := regexp.MustCompile(`(?m)^tensorflow-cpu==(.+)$`).FindSubmatch(list)
		if version == nil {
			t.Fatal("requirements.txt pins no tensorflow-cpu")
		}
		path = filepath.Join(cache, "muster", "venv-tensorflow-"+string(version[1]), "bin", "python")
	}
	if _, err := exec.LookPath(path); err != nil {
		need.Skip(t, "no TensorFlow (make it with scripts/lab/python tensorflow): "+err.Error())
	}
	return path
}

// copiedDigits is a data folder of the user's own.
func copiedDigits(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(catalogFolder, "package", "files", "digits.csv.gz"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "digits.csv.gz"), text, 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}
