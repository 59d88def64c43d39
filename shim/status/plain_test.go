package status

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/muster-agent/muster/shim/files"
)

// traps are what a hostile process may put in the place of its log: a link to a file that is not its own, a pipe, a folder.
func traps(t *testing.T) (dir string) {
	t.Helper()
	dir, victim := t.TempDir(), filepath.Join(t.TempDir(), "victim")
	if err := os.WriteFile(victim, []byte(`{"app":"secret"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Symlink(victim, filepath.Join(dir, "link")), unix.Mkfifo(filepath.Join(dir, "pipe"), 0o666),
		os.Mkdir(filepath.Join(dir, "folder"), 0o777)); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestReadJSONFollowsNoLink(t *testing.T) {
	dir := traps(t)
	for _, name := range []string{"link", "pipe", "folder"} {
		if err := ReadJSON(filepath.Join(dir, name), &AppFile{}); !errors.Is(err, files.ErrNotPlain) {
			t.Errorf("ReadJSON %s: got %v, want it refused", name, err)
		}
	}
}

// What has no end is not read whole.
func TestReadJSONIsBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "exit.json")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, 1<<40); err != nil {
		t.Fatal(err)
	}
	if err := ReadJSON(path, &ExitFile{}); err == nil || !strings.Contains(err.Error(), "longer than") {
		t.Errorf("got %v, want a bound", err)
	}
}

// The API answers to the process itself: it must give it no file of the host's through the agent's rights.
func TestLogsFollowNoLink(t *testing.T) {
	dir := traps(t)
	for name, trap := range map[string]string{"stdout": "link", "stderr": "pipe"} {
		if err := os.Rename(filepath.Join(dir, trap), filepath.Join(dir, name+".log")); err != nil {
			t.Fatal(err)
		}
		w := httptest.NewRecorder()
		Handler(Source{LogDir: dir}).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/logs/"+name, nil))
		var f failure
		if err := json.Unmarshal(w.Body.Bytes(), &f); err != nil || f.Error == "" || bytes.Contains(w.Body.Bytes(), []byte("secret")) {
			t.Errorf("%s: got %d %q, want it refused", name, w.Code, w.Body)
		}
	}
}

// Who wants only the newest is not kept busy by a file of any length, nor at the end.
func TestWatchSkipsWhatIsOld(t *testing.T) {
	path := filepath.Join(t.TempDir(), "stderr.log")
	f, err := files.AppendPlain(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Truncate(1 << 40); err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString("reporter progress:0.5\n"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var got bytes.Buffer
	if err := Watch(ctx, path, 0, &got); err != nil {
		t.Fatal(err)
	}
	if got.Len() > 2*mostBehind || !bytes.HasSuffix(got.Bytes(), []byte("progress:0.5\n")) {
		t.Errorf("got %d bytes, want the last %d", got.Len(), mostBehind)
	}
}
