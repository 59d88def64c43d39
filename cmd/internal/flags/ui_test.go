package flags

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/status"
)

const somePage = "https://page.example.org"

// Which of its places a verb asks: the page that a flag names in any case, the environment's for what this host does not
// know, and only with a token.
func TestThrough(t *testing.T) {
	state := status.Dir(t.TempDir())
	record := `{"version": 1, "app": "here", "registry": "unix:gone.sock", "started": "2026-01-02T03:04:05Z"}`
	if err := os.MkdirAll(state.App("here"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(state.App("here"), "app.json"), []byte(record), 0o600); err != nil {
		t.Fatal(err)
	}
	file := func(text string, mode os.FileMode) string {
		path := filepath.Join(t.TempDir(), "token")
		if err := os.WriteFile(path, []byte(text), mode); err != nil { //nolint:gosec // some are refused
			t.Fatal(err)
		}
		return path
	}
	good, open, empty := file(" secret\n", 0o600), file("secret", 0o644), file("", 0o600)
	type environment map[string]string
	set, both := environment{"MUSTER_UI": somePage}, environment{"MUSTER_UI": somePage, "MUSTER_UI_TOKEN": "secret"}
	for _, tt := range []struct {
		what  string
		args  []string
		env   environment
		page  bool
		code  int
		wants string
	}{
		{"far", nil, nil, false, 0, ""},
		{"far", nil, set, false, 0, ""}, // that is where runs are seen
		{"far", nil, both, true, 0, ""},
		{"far/worker-0", nil, both, true, 0, ""},
		{"", nil, both, true, 0, ""},
		{"here", nil, both, false, 0, ""},
		{"here/worker-0", nil, both, false, 0, ""},
		{"worker-0", nil, both, false, 0, ""}, // of the newest app
		{"far", []string{"--registry", "consul://127.0.0.1:1"}, both, false, 0, ""},
		{"far", []string{"--history", "file:/nowhere"}, both, false, 0, ""},
		{"here", []string{"--ui", somePage}, both, true, 0, ""},
		{"worker-0", []string{"--ui", somePage}, both, true, 0, ""},
		{"far", []string{"--ui", somePage, "--ui-token-file", good}, nil, true, 0, ""},
		{"far", []string{"--ui-token-file", good}, set, true, 0, ""},
		{"far", []string{"--ui", somePage}, environment{"MUSTER_UI_TOKEN_FILE": good}, true, 0, ""},
		{"far", []string{"--ui", somePage}, nil, false, exit.Usage, "want a token in MUSTER_UI_TOKEN, or in a file of mode 0600"},
		{"far", []string{"--ui", somePage, "--ui-token-file", empty}, both, false, exit.Usage, "no token is in it"},
		{"far", []string{"--ui", somePage, "--ui-token-file", open}, both, false, exit.Forbidden, "has mode 0644 or another owner"},
		{"far", []string{"--ui", somePage, "--ui-token-file", "/nonexistent/t"}, both, false, exit.Usage, "no such file"},
		{"far", []string{"--ui", somePage}, environment{"MUSTER_UI_TOKEN": "a b"}, false, exit.Usage, "want one word"},
		{"far", []string{"--ui", somePage, "--registry", "consul://127.0.0.1:1"}, both, false, exit.Usage, "want one of the three"},
		{"far", []string{"--ui-token-file", good}, nil, false, exit.Usage, "want --ui URL or MUSTER_UI"},
		{"far", []string{"--ui", "http://page.example.org"}, both, false, exit.Usage, "want https://HOST"},
	} {
		for _, name := range []string{"MUSTER_UI", "MUSTER_UI_TOKEN", "MUSTER_UI_TOKEN_FILE"} {
			t.Setenv(name, tt.env[name])
		}
		ask := Ask{}
		set := pflag.NewFlagSet("", pflag.ContinueOnError)
		ask.Register(set)
		ask.History.Register(set)
		ask.UI.Register(set)
		if err := set.Parse(append([]string{"--state-dir", string(state)}, tt.args...)); err != nil {
			t.Fatal(err)
		}
		k, err := ask.Lookup(tt.what, io.Discard)
		text := ""
		if err != nil {
			text = err.Error()
		}
		if (k.Page != nil) != tt.page || err == nil && tt.code != 0 || err != nil && exit.CodeOf(err) != tt.code ||
			!strings.Contains(text, tt.wants) || strings.Contains(text, "secret") {
			t.Errorf("%q %q %v: page %v, %v", tt.what, tt.args, tt.env, k.Page, err)
		}
		if tt.page && ask.UI.url != "" && k.State == state {
			t.Errorf("%q %q: this host is asked, too", tt.what, tt.args)
		}
	}
}

// A verb that does not take --ui asks no page.
func TestUnregistered(t *testing.T) {
	t.Setenv("MUSTER_UI", somePage)
	t.Setenv("MUSTER_UI_TOKEN", "secret")
	ask := Ask{State: State{Dir: t.TempDir()}}
	if k, err := ask.Lookup("far", io.Discard); err != nil || k.Page != nil {
		t.Errorf("%v, %v", k.Page, err)
	}
}
