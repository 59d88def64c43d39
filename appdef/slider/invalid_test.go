package slider_test

import (
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/appdef/slider"
)

var update = flag.Bool("update", false, "write the golden files anew")

// Each file in testdata/invalid is one broken definition: the package of testdata/base with some
// documents replaced. Beside the documents an archive may have `absent` (documents to leave out)
// and `args` (the command line); `want` has the exact text of the errors, `warnings` of the
// warnings, `lines` their line numbers, `exit` the exit code.
func TestInvalid(t *testing.T) {
	paths, err := filepath.Glob("testdata/invalid/*.txtar")
	if err != nil || len(paths) < 45 {
		t.Fatalf("%d cases, %v; want at least 45", len(paths), err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(path)
			if err != nil {
				t.Fatal(err)
			}
			fsys, options := read(t, archive)
			_, found := slider.Load(fsys, options)
			got := golden(found)
			if *update {
				write(t, path, archive, got)
				return
			}
			want := map[string]string{}
			for _, f := range archive.Files {
				if slices.Contains(outcomes, f.Name) {
					want[f.Name] = string(f.Data)
				}
			}
			if diff := cmp.Diff(got, want); diff != "" {
				t.Errorf("got -, want + (-update writes the file anew):\n%s", diff)
			}
		})
	}
}

var outcomes = []string{"want", "warnings", "lines", "exit"}

// golden is what is kept of the problems: texts, lines and the exit code.
func golden(found appdef.Problems) map[string]string {
	got := map[string]string{"exit": "0\n"}
	if errs := found.Errors(); len(errs) > 0 {
		got["want"] = errs.Error() + "\n"
		got["exit"] = "65\n"
		if found.Usage() {
			got["exit"] = "64\n"
		}
	}
	if warnings := found.Warnings(); len(warnings) > 0 {
		got["warnings"] = warnings.Error() + "\n"
	}
	var lines []string
	for _, p := range slices.Concat(found.Errors(), found.Warnings()) {
		lines = append(lines, fmt.Sprint(p.Line))
	}
	got["lines"] = strings.Join(lines, " ") + "\n"
	return got
}

func write(t *testing.T, path string, archive *txtar.Archive, got map[string]string) {
	t.Helper()
	archive.Files = slices.DeleteFunc(archive.Files, func(f txtar.File) bool { return slices.Contains(outcomes, f.Name) })
	for _, name := range outcomes {
		if text, ok := got[name]; ok {
			archive.Files = append(archive.Files, txtar.File{Name: name, Data: []byte(text)})
		}
	}
	if err := os.WriteFile(path, txtar.Format(archive), 0o644); err != nil {
		t.Fatal(err)
	}
}

// read makes the package and the options of a case.
func read(t *testing.T, archive *txtar.Archive) (fs.FS, slider.Options) {
	t.Helper()
	files := fstest.MapFS{}
	for _, name := range []string{"metainfo.json", "appConfig.json", "resources.json"} {
		data, err := os.ReadFile("testdata/base/" + name)
		if err != nil {
			t.Fatal(err)
		}
		files[name] = &fstest.MapFile{Data: data}
	}
	files["package/scripts/train.py"] = &fstest.MapFile{Data: []byte("pass\n")}
	args := ""
	for _, f := range archive.Files {
		switch {
		case f.Name == "args":
			args = string(f.Data)
		case f.Name == "absent":
			for name := range strings.FieldsSeq(string(f.Data)) {
				delete(files, name)
			}
		case !slices.Contains(outcomes, f.Name):
			files[f.Name] = &fstest.MapFile{Data: f.Data}
		}
	}
	return files, parse(t, files, args)
}

func parse(t *testing.T, files fstest.MapFS, args string) slider.Options {
	t.Helper()
	var o slider.Options
	for line := range strings.Lines(args) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch name {
		case "--set":
			o.Set = append(o.Set, value)
		case "--instances":
			o.Instances = append(o.Instances, value)
		case "--template":
			o.Template = &slider.File{Name: value, Data: files[value].Data}
		case "--name":
			o.Name = value
		case "--strict":
			o.Strict = true
		default:
			t.Fatalf("args: %q", line)
		}
	}
	return o
}
