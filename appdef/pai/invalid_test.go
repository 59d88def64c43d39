package pai_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/appdef/pai"
)

var update = flag.Bool("update", false, "write the golden files anew")

func compare(t *testing.T, golden string, got []byte) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(golden), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(golden, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(got), "\n"), strings.Split(string(want), "\n")); diff != "" {
		t.Errorf("%s (-got +want):\n%s", golden, diff)
	}
}

// Each file in testdata/invalid is one broken job: job.json, and args where the command line is at fault. `want` has the exact
// text of the errors, `warnings` of the warnings, `lines` their line numbers, `exit` the exit code.
func TestInvalid(t *testing.T) {
	paths, err := filepath.Glob("testdata/invalid/*.txtar")
	if err != nil || len(paths) < 35 {
		t.Fatalf("%d cases, %v; want at least 35", len(paths), err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(path)
			if err != nil {
				t.Fatal(err)
			}
			data, options := read(t, archive)
			_, found := pai.Load(data, options)
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

func read(t *testing.T, archive *txtar.Archive) (data []byte, o pai.Options) {
	t.Helper()
	for _, f := range archive.Files {
		switch f.Name {
		case "job.json", "job.yaml":
			data, o.Name = f.Data, f.Name
		case "args":
			for line := range strings.Lines(string(f.Data)) {
				name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
				switch name {
				case "--set":
					o.Set = append(o.Set, value)
				case "--instances":
					o.Instances = append(o.Instances, value)
				case "--pai-version":
					o.Version = value
				default:
					t.Fatalf("args: %q", line)
				}
			}
		}
	}
	return data, o
}
