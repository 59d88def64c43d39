package troubles

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	diff "github.com/google/go-cmp/cmp"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/wording"
)

var update = flag.Bool("update", false, "rewrite golden files")

const top = "../../.."

// constants are the constants of a room's files whose names match, by name; strings unquoted.
func constants(t *testing.T, room, names string) map[string]string {
	t.Helper()
	found := map[string]string{}
	each(t, room, func(n ast.Node) {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return
		}
		for i, name := range spec.Names {
			if i >= len(spec.Values) || !regexp.MustCompile(names).MatchString(name.Name) {
				continue
			}
			if lit, ok := spec.Values[i].(*ast.BasicLit); ok {
				found[name.Name] = lit.Value
				if text, err := strconv.Unquote(lit.Value); err == nil {
					found[name.Name] = text
				}
			}
		}
	})
	if len(found) == 0 {
		t.Fatalf("%s has no constants %s", room, names)
	}
	return found
}

// each visits the syntax of the product's files below a folder.
func each(t *testing.T, folder string, visit func(ast.Node)) {
	t.Helper()
	err := filepath.WalkDir(filepath.Join(top, folder), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Base(filepath.Dir(path)) == "troubles" || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err == nil {
			ast.Inspect(file, func(n ast.Node) bool { visit(n); return true })
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func hasRow(is func(row) bool) bool {
	return slices.ContainsFunc(catalogue, func(g group) bool { return slices.ContainsFunc(g.rows, is) })
}

func TestEveryExitCodeHasARow(t *testing.T) {
	for name, value := range constants(t, "shim/exit", `^([A-Z]|other$)`) {
		code, err := strconv.Atoi(value)
		if err != nil {
			t.Fatalf("%s = %s: %v", name, value, err)
		}
		if !hasRow(func(r row) bool { return len(r.symptoms()) == 0 && slices.Contains(r.codes, code) }) {
			t.Errorf("exit code %d (shim/exit, %s) has no row of its own", code, name)
		}
	}
}

// A cuDNN that does not start means taken memory more often than a wrong version.
func TestCuDNNNotInitialized(t *testing.T) {
	const said = "RuntimeError: cuDNN error: CUDNN_STATUS_NOT_INITIALIZED"
	groups := find(Heard(said))
	if len(groups) != 1 || len(groups[0].rows) != 1 {
		t.Fatalf("got %v, want one row", groups)
	}
	r := groups[0].rows[0]
	for _, want := range []string{"memory is taken", "built for another cuDNN", "TF_FORCE_GPU_ALLOW_GROWTH", "table of versions"} {
		if !strings.Contains(r.because+r.fix, want) {
			t.Errorf("%s: %s %s, want %q in it", r.first(), r.because, r.fix, want)
		}
	}
}

func TestEveryClassHasARow(t *testing.T) {
	for name, class := range constants(t, "registry", `^Class.`) {
		if class != "" && !hasRow(func(r row) bool { return len(r.symptoms()) == 0 && r.class == registry.Class(class) }) {
			t.Errorf("class %s (registry.%s) has no row of its own", class, name)
		}
	}
}

// verb is what stands in a format for what varies.
var verb = regexp.MustCompile(`%[-+#0-9.*]*[a-zA-Z]`)

func TestEveryCauseHasARow(t *testing.T) {
	for _, room := range []string{"registry/conductor", "shim/machine", "shim/process", "cmd/internal/run"} {
		for name, cause := range constants(t, room, `^cause[A-Z]`) {
			numbers := strings.ReplaceAll(cause, "%d", "1")
			said := strings.TrimSpace(verb.ReplaceAllString(numbers, "x"))
			if len(found(find(said), byGeneral, said)) == 0 {
				t.Errorf("%s, %s: no row has a symptom of %q", room, name, said)
			}
		}
	}
}

// found are the first symptoms of the rows that a text means so surely.
func found(groups []group, sure int, text string) (all []string) {
	for _, g := range groups {
		for _, r := range g.rows {
			if r.in(text) >= sure {
				all = append(all, r.first())
			}
		}
	}
	return all
}

// varies is what differs between two messages of one kind, and the words that appdef.Problem puts around its own.
var varies = regexp.MustCompile(gap + `|\b[0-9]+\b|\bgot |, want `)

// TestSymptomsAreMessages: the words of a symptom stand in a message of the product, so that a message that is pasted is found.
func TestSymptomsAreMessages(t *testing.T) {
	var all strings.Builder
	for _, folder := range []string{"appdef", "registry", "shim", "packages", "cmd/muster", "cmd/internal"} {
		each(t, folder, func(n ast.Node) {
			if e, ok := n.(ast.Expr); ok {
				all.WriteString(joined(e) + "\n")
			}
		})
	}
	product := all.String()
	for _, g := range catalogue {
		for _, r := range g.rows {
			for _, s := range r.says {
				for _, piece := range varies.Split(s, -1) {
					if piece = strings.TrimSpace(piece); !strings.Contains(product, piece) {
						t.Errorf("%q: no message of the product has %q", s, piece)
					}
				}
			}
		}
	}
}

// joined is the text of a string literal, or of several that are added.
func joined(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		if text, err := strconv.Unquote(e.Value); err == nil && e.Kind == token.STRING {
			return text
		}
	case *ast.BinaryExpr:
		if e.Op == token.ADD {
			return joined(e.X) + joined(e.Y)
		}
	}
	return ""
}

// TestPageIsCurrent holds doc/troubleshooting.md to the catalogue.
func TestPageIsCurrent(t *testing.T) {
	file := filepath.Join(top, "doc", "troubleshooting.md")
	want := page()
	if *update {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := diff.Diff(string(have), want); d != "" {
		t.Errorf("%s is not what the catalogue says (make golden): -have +want\n%s", file, d)
	}
}

func page() string {
	var b strings.Builder
	b.WriteString("# Troubleshooting\n\nFind the words of the message on this page, or let `muster help errors` find them:\n\n" +
		"```\nmuster help errors registry forbids it     # words of a message, or all of it\n" +
		"muster help errors 77                      # an exit code\nmuster help errors out-of-memory           # a class\n```\n\n" +
		"`…` stands for what differs from message to message. Printed from the program (`make golden`).\n")
	for _, g := range catalogue {
		fmt.Fprintf(&b, "\n## %s\n", g.title)
		for _, r := range g.rows {
			b.WriteString("\n")
			var head []string
			for _, s := range r.symptoms() {
				head = append(head, "`"+s+"`")
			}
			if end := r.ending(); end != "" {
				head = append(head, strings.ToUpper(end[:1])+end[1:])
			}
			b.WriteString(strings.Join(head, "  \n") + "\n")
			b.WriteString("\n")
			b.WriteString(wording.Wrap("- Cause: "+r.because, width, 2) + "\n")
			b.WriteString(wording.Wrap("- Fix: "+r.fix, width, 2) + "\n")
		}
	}
	return b.String()
}

// TestHelpFitsATerminal: 80 columns, each row once.
func TestHelpFitsATerminal(t *testing.T) {
	text, err := Help(nil)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(text) {
		if n := len([]rune(strings.TrimSuffix(line, "\n"))); n > width {
			t.Errorf("%d columns: %s", n, line)
		}
	}
}

// What programs say at their end, and the words that lead to its row.
func TestHeard(t *testing.T) {
	tests := []struct{ name, words, want string }{
		{"a module", "  import nosuch\nModuleNotFoundError: No module named 'nosuch'", "No module named"},
		{
			"PyTorch", "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 1.95 GiB",
			"CUDA out of memory",
		},
		{
			"TensorFlow", "W bfc_allocator.cc:497] Allocator (GPU_0_bfc) ran out of memory trying to allocate 4.00GiB\n" +
				"OP_REQUIRES failed: RESOURCE_EXHAUSTED: OOM when allocating tensor with shape[65536,16384]",
			"OOM when allocating tensor",
		},
		{
			"another cuDNN", "E cuda_dnn.cc:319] Loaded runtime CuDNN library: 7.1.4 but source was compiled with: 7.4.1.",
			"Loaded runtime CuDNN library",
		},
		{
			"no cuDNN", "ImportError: libcudnn.so.6: cannot open shared object file: No such file or directory",
			"libcudnn.so",
		},
		{"the last line that has one", "No module named 'a'\nAddress already in use\nbye", "Address already in use"},
		{"a word with an apostrophe", "python3: can't open file '/x.py': [Errno 2] No such file or directory", "'can'\\''t' open file"},
		{"nothing known", "Killed\nnot found\n", ""},
		{"nothing", "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := Heard(tt.words)
			if got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
			typed, err := exec.Command("sh", "-c", "printf '%s ' "+got).Output()
			if err != nil {
				t.Errorf("no shell reads %s: %v", got, err)
			}
			if got != "" && len(find(strings.TrimSpace(string(typed)))) == 0 {
				t.Errorf("muster help errors %s finds nothing", got)
			}
		})
	}
}

func TestFind(t *testing.T) {
	tests := []struct {
		text string
		want []string // the first symptoms
	}{
		{"a1: failed: worker-0 exited with 127 after 5 restarts in 300 s", []string{"a command or a shared library was not found", "… after … restart…"}},
		{"EXITED   WITH\n127", []string{"a command or a shared library was not found"}},
		{"never joined", []string{"… of … instances were not ready within …"}},
		{"93", []string{"exit code 93"}},
		{"exit code 93", []string{"exit code 93"}},
		{"preempted", []string{"class preempted"}},
		{"AccessorID", []string{"registry forbids it"}},
		{"/home/a is closed to uid 4242, which it has on this host", []string{"… is closed to uid …"}},
		{
			"/srv/x: an agent that is root writes for a definition only below its work folder: name a path there",
			[]string{"…: an agent that is root writes for a definition only below its work folder"},
		},
		{"variable CONSUL_HTTP_TOKEN belongs to the agent: give it", []string{"variable … belongs to the agent"}},
		{"policy.json:3: mount: no such field, want mounts", []string{"no such field, want …"}},
		{
			"/sys/fs/cgroup/unified/muster/d1/worker-0: processes [7]: in use by processes that are no child of this agent",
			[]string{"in use by processes that are no child of this agent"},
		},
		{
			"the process has saved out/step-7 in its own folder, which no other instance sees and muster does not look at",
			[]string{"the process has saved … in its own folder, which no other instance sees"},
		},
		{"consul://10.0.0.1:8500 answers, and its token 1234 may not make sessions", []string{"registry forbids it"}},
		{"no such words anywhere", nil},
	}
	for _, tt := range tests {
		if got := found(find(tt.text), 0, tt.text); !slices.Equal(got, tt.want) {
			t.Errorf("%q: got %q, want %q", tt.text, got, tt.want)
		}
	}
}
