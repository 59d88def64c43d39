package docs_test

import (
	"path"
	"slices"
	"strings"
	"testing"
)

// words are those of the code in a document that begins as given: a list that goes over several lines.
func words(t testing.TB, document, begin string) []string {
	t.Helper()
	for _, s := range spans(document) {
		if strings.HasPrefix(s.code, begin) {
			return strings.Fields(s.code)
		}
	}
	t.Fatalf("the manual has no list that begins with %s", begin)
	return nil
}

// TestManualVariables compares the manual's list of what a process is told, and of what it inherits, with what one has.
func TestManualVariables(t *testing.T) {
	manual := read(t, "doc/manual.md")
	d := newDesk(t)
	for _, e := range examples(manual) {
		for name, text := range e.files {
			d.write(path.Join("app", name), text)
		}
	}
	d.write("app/package/files/none", "")
	want := []string{"MUSTER_PORT_GLOBAL_WORKER_PORT"} // PORT_<NAME> of the example
	for _, name := range words(t, manual, "MUSTER_APP_ID ") {
		if !strings.Contains(name, "<") {
			want = append(want, "MUSTER_"+strings.TrimPrefix(name, "MUSTER_"))
		}
	}
	assign := ""
	for _, pattern := range words(t, manual, "PATH HOME ") {
		name := strings.ReplaceAll(pattern, "*", "x_x")
		want = append(want, name)
		if !slices.Contains([]string{"PATH", "HOME", "TMPDIR", "SHELL", "LD_LIBRARY_PATH"}, name) {
			assign += name + "=x "
		}
	}
	output, code := d.types(assign + "SHELL=/bin/sh TMPDIR=/tmp LD_LIBRARY_PATH=/none STRAY=x bin/muster run app --engine cgroup --app-id vars --work-dir w --set muster.command=env")
	if code != 0 {
		t.Fatalf("run: exit code %d\n%s", code, output)
	}
	text, code := d.types("sed 's/=.*//' w/log/worker-0/stdout.log")
	if code != 0 {
		t.Fatal(text)
	}
	got := strings.Fields(text)
	for _, name := range want {
		if !slices.Contains(got, name) {
			t.Errorf("the process has no %s", name)
		}
	}
	for _, name := range got {
		if strings.HasPrefix(name, "MUSTER_") && !slices.Contains(want, name) {
			t.Errorf("the manual does not name %s", name)
		}
	}
	if slices.Contains(got, "STRAY") {
		t.Error("the process inherits what is not on the list")
	}
}
