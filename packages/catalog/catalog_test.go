package catalog_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/muster-agent/muster/packages/catalog"
)

func TestEveryPackageIsComplete(t *testing.T) {
	name := regexp.MustCompile(`^[a-z][a-z0-9-]*$`)
	for _, n := range catalog.Names() {
		t.Run(n, func(t *testing.T) {
			if !name.MatchString(n) {
				t.Errorf("name %q: want %s", n, name)
			}
			fsys, err := catalog.Open(n)
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range []string{"metainfo.json", "appConfig.default.json", "resources.default.json"} {
				var object map[string]any
				if err := json.Unmarshal(read(t, fsys, f), &object); err != nil {
					t.Errorf("%s: %v", f, err)
				}
			}
			if len(read(t, fsys, "README.md")) == 0 {
				t.Error("README.md is empty")
			}
		})
	}
}

func TestNamesAreSortedAndKnown(t *testing.T) {
	names := catalog.Names()
	if !slices.IsSorted(names) {
		t.Errorf("names %v: want them sorted", names)
	}
	for _, want := range []string{"handwriting", "horovod", "jax", "jupyter", "keras", "lightgbm", "mpi", "mxnet", "pytorch", "tensorflow", "vpc", "xgboost"} {
		if !slices.Contains(names, want) {
			t.Errorf("names %v: want %s among them", names, want)
		}
	}
}

func TestUnknownNameListsTheKnownOnes(t *testing.T) {
	for _, name := range []string{"tensorflw", "", ".", "handwriting/package", "../catalog"} {
		_, err := catalog.Open(name)
		if !errors.Is(err, catalog.ErrUnknown) {
			t.Errorf("open %q: got %v, want ErrUnknown", name, err)
			continue
		}
		for _, known := range catalog.Names() {
			if !strings.Contains(err.Error(), known) {
				t.Errorf("open %q: %v does not name %s", name, err, known)
			}
		}
	}
}

// A commandScript that is not there makes the framework's own command run instead, without a word.
func TestScriptsThatAreNamedAreThere(t *testing.T) {
	for _, n := range catalog.Names() {
		fsys, err := catalog.Open(n)
		if err != nil {
			t.Fatal(err)
		}
		var metainfo struct {
			Application struct {
				Components []struct {
					Name          string
					CommandScript struct{ Script string }
				}
			}
		}
		if err := json.Unmarshal(read(t, fsys, "metainfo.json"), &metainfo); err != nil {
			t.Fatal(err)
		}
		for _, c := range metainfo.Application.Components {
			if script := c.CommandScript.Script; script != "" {
				read(t, fsys, "package/"+script)
			}
		}
	}
}

// Python leaves compiled files beside sources that are imported in place; embedded,
// they would change the digest of the app.
func TestNothingButSourceIsEmbedded(t *testing.T) {
	err := fs.WalkDir(catalog.FS(), ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.Name() == "__pycache__" || path.Ext(p) == ".pyc" {
			t.Errorf("%s is embedded: remove it and build again", p)
		}
		if strings.HasPrefix(d.Name(), "test_") {
			t.Errorf("%s is embedded: tests lie in tests/python", p)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestDigitsAreTheSameInAllPackages(t *testing.T) {
	same := 0
	for _, n := range catalog.Names() {
		fsys, err := catalog.Open(n)
		if err != nil {
			t.Fatal(err)
		}
		digits, err := fs.ReadFile(fsys, "package/files/digits.csv.gz")
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if same++; !bytes.Equal(digits, read(t, catalog.FS(), "handwriting/package/files/digits.csv.gz")) {
			t.Errorf("digits.csv.gz of %s and handwriting differ", n)
		}
	}
	if same < 7 {
		t.Errorf("got %d packages with the digits, want 7 or more", same)
	}
}

func read(t *testing.T, fsys fs.FS, name string) []byte {
	t.Helper()
	b, err := fs.ReadFile(fsys, name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
