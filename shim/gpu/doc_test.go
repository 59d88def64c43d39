package gpu

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite golden files")

// The table that operators read is the one that decides.
func TestDocumentedXids(t *testing.T) {
	const file, begin, end = "../../doc/gpu.md", "<!-- xids: make golden -->\n", "<!-- end of xids -->"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok1 := strings.Cut(string(text), begin)
	got, after, ok2 := strings.Cut(rest, end)
	if !ok1 || !ok2 {
		t.Fatalf("%s has no %q", file, begin)
	}
	want := xidTable()
	if *update {
		if err := os.WriteFile(file, []byte(before+begin+want+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("doc/gpu.md is not the table (make golden): -want +got\n%s", diff)
	}
}

func xidTable() string {
	var b strings.Builder
	b.WriteString("| Xid | name | meaning | class | cause | NVIDIA |\n|---|---|---|---|---|---|\n")
	for _, x := range xids {
		var causes []string
		for _, c := range x.Causes {
			causes = append(causes, string(c))
		}
		fmt.Fprintf(&b, "| %d | %s | %s | %s | %s | %s |\n", x.Number, x.Name, x.Meaning, x.Class, strings.Join(causes, ", "), x.Action)
	}
	return b.String()
}
