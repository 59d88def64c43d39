package gang

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// nextVersion is what the next build calls itself.
const nextVersion = "next-build"

// change replaces a text of a source file, which must be there once.
type change struct{ file, old, new string }

// changes make these sources those of a later build: it speaks protocol 2, writes a field that this build does not know
// into the app's record, the directive and the members', and has a setting whose default is not zero.
var changes = []change{
	{"registry/proto.go", "newestProto = 1\n", "newestProto = 2\n"},
	{"registry/app.go", "type AppRecord struct {\n", "type AppRecord struct {\n\tNovel string `json:\"novel,omitempty\"`\n"},
	{"registry/directive.go", "type Directive struct {\n", "type Directive struct {\n\tNovel string `json:\"novel,omitempty\"`\n"},
	{"registry/member.go", "type Notes struct {\n", "type Notes struct {\n\tNovel string `json:\"novel,omitempty\"`\n"},
	{"registry/conductor/admission.go", "\ta.Proto = me.Speaks.OrFirst()\n", "\ta.Proto, a.Novel = me.Speaks.OrFirst(), \"app\"\n"},
	{"registry/consul/election.go", "\td.By, d.Seq = ", "\td.Novel = \"directive\"\n\td.By, d.Seq = "},
	{"shim/member/join.go", "\tif me.Instance != nil {\n\t\treturn me, nil\n", "\tme.Member.Novel = \"member\"\n\tif me.Instance != nil {\n\t\treturn me, nil\n"},
	{"appdef/app.go", "type App struct {\n", "type App struct {\n\tNovel int `json:\"novel\" proto:\"2\"`\n"},
	{"appdef/settle.go", "\ts.defaults()\n", "\ts.defaults()\n\ta.Novel = 7\n"},
}

// buildNext builds the later muster from the changed sources and returns its path. The files of the tree stay as they
// are.
func buildNext(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	texts := map[string]string{}
	for _, c := range changes {
		path := filepath.Join(root, c.file)
		if texts[path] == "" {
			texts[path] = read(path)
		}
		if n := strings.Count(texts[path], c.old); n != 1 {
			t.Fatalf("%s has %q %d times, want once: the next build is made by changing it", c.file, c.old, n)
		}
		texts[path] = strings.Replace(texts[path], c.old, c.new, 1)
	}
	overlay := struct{ Replace map[string]string }{map[string]string{}}
	for path, text := range texts {
		changed := filepath.Join(dir, strings.ReplaceAll(strings.TrimPrefix(path, root+"/"), "/", "_"))
		overlay.Replace[path] = changed
		write(t, changed, []byte(text))
	}
	list, err := json.Marshal(overlay)
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "overlay.json"), list)
	out := filepath.Join(dir, "muster")
	cmd := exec.Command("go", "build", "-trimpath", "-overlay", filepath.Join(dir, "overlay.json"), "-tags", "netgo osusergo",
		"-ldflags", "-s -w -X main.version="+nextVersion+" -extldflags -static", "-o", out, "./cmd/muster")
	cmd.Dir, cmd.Env = root, append(os.Environ(), "CGO_ENABLED=1", "CGO_CFLAGS=-O2 -g -Wno-deprecated-declarations")
	if said, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build the next muster: %v\n%s", err, said)
	}
	return out
}

func write(t *testing.T, path string, text []byte) {
	t.Helper()
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
}
