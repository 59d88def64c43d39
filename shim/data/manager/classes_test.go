package manager

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/muster-agent/muster/shim/store/file"
)

// The list of the reader who is first is that of all; lists of the app's earlier runs go, those of others stay.
func TestSharedList(t *testing.T) {
	runs := filepath.Join(t.TempDir(), "splits")
	reader := func(app, run, turn string) sharedList {
		return sharedList{store: file.New(file.Machine{}), runs: runs, app: app, run: filepath.Join(runs, app+"@"+run), name: "n", turn: turn}
	}
	for _, step := range []struct{ app, run, turn, made, want string }{
		{"a", "1", "x", "one\n", "one\n"},
		{"ab", "1", "x", "of another\n", "of another\n"},
		{"a", "2", "x", "two\n", "two\n"},
		{"a", "2", "y", "two in another order\n", "two\n"},
		{"a", "2", "x", "again\n", "two\n"},
	} {
		l := reader(step.app, step.run, step.turn)
		if got, err := l.share(t.Context(), step.made); err != nil || got != step.want {
			t.Errorf("%+v: got %q, %v", step, got, err)
		}
		if got, err := l.read(t.Context()); err != nil || got != step.want {
			t.Errorf("%+v: read %q, %v", step, got, err)
		}
	}
	left, err := filepath.Glob(filepath.Join(runs, "*", "*"))
	if want := []string{"a@2/n", "ab@1/n"}; err != nil || strings.Join(left, " ") != filepath.Join(runs, want[0])+" "+filepath.Join(runs, want[1]) {
		t.Errorf("left %v, %v, want %v", left, err, want)
	}
	if err := os.RemoveAll(runs); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(runs, nil, 0o600); err != nil { // where nobody can make a folder
		t.Fatal(err)
	}
	l := reader("a", "1", "x")
	_, err = l.share(t.Context(), "one\n")
	if err = l.explain("hdfs://nn/s", err); err == nil || !strings.HasPrefix(err.Error(), "share the list of splits in hdfs://nn/s: ") {
		t.Errorf("got %v", err)
	}
}

func TestLastBytes(t *testing.T) {
	l := &lastBytes{}
	for range 3 {
		if n, err := l.Write([]byte(strings.Repeat("x", mostSaid-3) + "end")); n != mostSaid || err != nil {
			t.Fatal(n, err)
		}
	}
	if got := l.text(); len(got) != mostSaid || !strings.HasSuffix(got, "end") {
		t.Errorf("kept %d bytes", len(got))
	}
}
