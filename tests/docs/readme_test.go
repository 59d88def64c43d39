package docs_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// typed is a line that a document has the reader type, and what it says comes back.
type typed struct {
	line int
	text string
	says []string // lines; … stands for anything
}

// consoles are the lines to be typed of all console blocks, in order.
func consoles(document string) []typed {
	var found []typed
	blocks, _ := fences(document)
	for _, b := range blocks {
		if b.lang != "console" {
			continue
		}
		for i, line := range b.text {
			text, isTyped := strings.CutPrefix(line, "$ ")
			switch {
			case isTyped:
				found = append(found, typed{line: b.line + i, text: text})
			case strings.TrimSpace(line) != "" && line != "…" && len(found) > 0:
				last := &found[len(found)-1]
				last.says = append(last.says, line)
			}
		}
	}
	return found
}

// says tells whether an output has a line as quoted, where … stands for anything.
func says(output, quoted string) bool {
	form := strings.ReplaceAll(regexp.QuoteMeta(strings.TrimRight(quoted, " ")), "…", ".*")
	return regexp.MustCompile(`(?m)^` + form + ` *$`).MatchString(output)
}

// packageLine is a line `FOLDER/FILE.json  {…}` of the manual: a file of a package and all of its text.
var packageLine = regexp.MustCompile(`(?m)^(hello/\S+\.json)\s+(\{.*\})$`)

// smallest writes the smallest package that the manual spells out.
func (d desk) smallest() {
	d.t.Helper()
	files := packageLine.FindAllStringSubmatch(read(d.t, "doc/manual.md"), -1)
	if len(files) != 3 {
		d.t.Fatalf("got the files %v of the smallest package, want three", files)
	}
	for _, f := range files {
		d.write(f[1], f[2])
	}
}

func TestReadmeAsTyped(t *testing.T) {
	python(t)
	text := read(t, "README.md")
	d := newDesk(t)
	all := steps(text)
	if len(all) < 5 {
		t.Fatalf("only %d lines to type", len(all))
	}
	for _, l := range all {
		if l.file != "" {
			d.write(l.file, l.text)
			continue
		}
		output, code := d.types(l.text)
		if code != 0 {
			t.Fatalf("README.md:%d: %s: exit code %d\n%s", l.line, l.text, code, output)
		}
		for _, quoted := range l.says {
			if !says(output, quoted) {
				t.Errorf("README.md:%d: %s: does not say %q but\n%s", l.line, l.text, quoted, output)
			}
		}
	}
}

// problemLine is a problem as muster prints it: FILE#POINTER: got VALUE, want ….
var problemLine = regexp.MustCompile(`^(\w+\.json)#(/\S+): got (\S+), want `)

// TestManualProblems puts the values that the manual shows problems of into its smallest package.
func TestManualProblems(t *testing.T) {
	text := read(t, "doc/manual.md")
	tried := 0
	blocks, _ := fences(text)
	for _, b := range blocks {
		for i, line := range b.text {
			m := problemLine.FindStringSubmatch(line)
			if m == nil {
				continue
			}
			tried++
			d := newDesk(t)
			d.smallest()
			spoil(t, filepath.Join(d.dir, "hello", m[1]), m[2], m[3])
			output, code := d.types("bin/muster validate hello")
			if code != 65 || !says(output, line) {
				t.Errorf("doc/manual.md:%d: got exit code %d and\n%swant 65 and\n%s", b.line+i, code, output, line)
			}
		}
	}
	if tried == 0 {
		t.Error("the manual shows no problem")
	}
}

// spoil sets the value at a JSON pointer of a file.
func spoil(t testing.TB, file, pointer, value string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var root map[string]any
	if err := json.Unmarshal(text, &root); err != nil {
		t.Fatal(err)
	}
	names := strings.Split(strings.TrimPrefix(pointer, "/"), "/")
	at := root
	for _, name := range names[:len(names)-1] {
		next, ok := at[name].(map[string]any)
		if !ok {
			t.Fatalf("%s has no %s", file, pointer)
		}
		at = next
	}
	var v any
	if err := json.Unmarshal([]byte(value), &v); err != nil {
		t.Fatal(err)
	}
	at[names[len(names)-1]] = v
	if text, err = json.Marshal(root); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestSays(t *testing.T) {
	for _, tt := range []struct {
		output, quoted string
		want           bool
	}{
		{"one\nd1: succeeded after 3.2s\n", "d1: succeeded after …", true},
		{"one\nd1: succeeded after 3.2s\n", "d1: failed after …", false},
		{"one two\n", "one", false},
		{"one  \n", "one", true},
		{"a.b\n", "a.b", true},
		{"axb\n", "a.b", false},
	} {
		if got := says(tt.output, tt.quoted); got != tt.want {
			t.Errorf("%q says %q: got %v", tt.output, tt.quoted, got)
		}
	}
}
