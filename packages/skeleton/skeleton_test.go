package skeleton

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestWritePutsTheNameIn(t *testing.T) {
	for _, kind := range Kinds() {
		t.Run(kind, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "new", "app")
			files, err := Write(kind, "digits", dir)
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range []string{"README.md", "metainfo.json", "appConfig.default.json", "resources.default.json"} {
				if !slices.Contains(files, want) {
					t.Errorf("got %v, want %s among them", files, want)
				}
			}
			for _, file := range files {
				text, err := os.ReadFile(filepath.Join(dir, file))
				if err != nil {
					t.Fatal(err)
				}
				if other := "catalog:" + kind; slices.Contains(shown(), kind) && file == "README.md" && strings.Contains(string(text), "run "+other) {
					t.Errorf("%s says to run %s", file, other)
				}
				if strings.Contains(string(text), placeholder) {
					t.Errorf("%s has %s in it", file, placeholder)
				}
				info, err := os.Stat(filepath.Join(dir, file))
				if err != nil {
					t.Fatal(err)
				}
				if program, may := strings.HasPrefix(string(text), "#!"), info.Mode()&0o100 != 0; program != may {
					t.Errorf("%s: begins with #!: %v, may be executed: %v", file, program, may)
				}
			}
			metainfo, err := os.ReadFile(filepath.Join(dir, "metainfo.json"))
			if err != nil || !strings.Contains(string(metainfo), `"name": "digits"`) {
				t.Errorf("metainfo.json: got %s, %v", metainfo, err)
			}
		})
	}
}

func TestWriteRefuses(t *testing.T) {
	full := t.TempDir()
	if err := os.WriteFile(filepath.Join(full, "mine"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, kind, app, dir string
		want                 error
	}{
		{"a folder with something in it", Plain, "a", full, ErrNotEmpty},
		{"a name with a slash", Plain, "a/b", "", ErrName},
		{"a capital", Plain, "A", "", ErrName},
		{"no name", Plain, "", "", ErrName},
		{"a long name", Plain, strings.Repeat("a", 41), "", ErrName},
		{"a kind that is not there", "cobol", "a", "", ErrKind},
		{"a package of the catalog that is no framework", "handwriting", "a", "", ErrKind},
		{"a folder within a kind", "none/package", "a", "", ErrKind},
		{"the folder of all kinds", ".", "a", "", ErrKind},
		{"outside", "..", "a", "", ErrKind},
		{"no kind", "", "a", "", ErrKind},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := tt.dir
			if dir == "" {
				dir = filepath.Join(t.TempDir(), "new")
			}
			before, _ := os.ReadDir(dir)
			if _, err := Write(tt.kind, tt.app, dir); !errors.Is(err, tt.want) {
				t.Errorf("got %v, want %v", err, tt.want)
			}
			if after, _ := os.ReadDir(dir); len(after) != len(before) {
				t.Errorf("got %v in the folder, want %v", after, before)
			}
		})
	}
}
