package status

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/muster-agent/muster/tests/need"
)

// traps are what a hostile process may put in the place of its log; victim is a file that is not its own.
func traps(t *testing.T) (dir, victim string) {
	t.Helper()
	dir, victim = t.TempDir(), filepath.Join(t.TempDir(), "victim")
	if err := os.WriteFile(victim, []byte(`{"app":"secret"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Symlink(victim, filepath.Join(dir, "link")), unix.Mkfifo(filepath.Join(dir, "pipe"), 0o666),
		os.Mkdir(filepath.Join(dir, "folder"), 0o777)); err != nil {
		t.Fatal(err)
	}
	return dir, victim
}

func TestOnlyPlainFilesAreOpened(t *testing.T) {
	dir, victim := traps(t)
	if err := os.Link(victim, filepath.Join(dir, "hard")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"link", "pipe", "folder"} {
		path := filepath.Join(dir, name)
		for act, open := range map[string]func(string) (*os.File, error){"read": OpenPlain, "append": AppendPlain} {
			if f, err := open(path); !errors.Is(err, ErrNotPlain) {
				t.Errorf("%s %s: got %v, %v; want it refused", act, name, f, err)
			}
		}
		if err := ReadJSON(path, &AppFile{}); !errors.Is(err, ErrNotPlain) {
			t.Errorf("ReadJSON %s: got %v, want it refused", name, err)
		}
		if got := PlainSize(path); got != 0 {
			t.Errorf("%s has %d bytes, want 0", name, got)
		}
	}
	if f, err := AppendPlain(filepath.Join(dir, "hard")); !errors.Is(err, ErrNotPlain) {
		t.Errorf("append to a file with another name: got %v, %v; want it refused", f, err)
	}
	if got, err := os.ReadFile(victim); err != nil || string(got) != `{"app":"secret"}` {
		t.Errorf("the file outside holds %q, %v", got, err)
	}
}

// A device is not opened at all: that alone may start it.
func TestNodesAreNotTouched(t *testing.T) {
	need.Root(t)
	path := filepath.Join(t.TempDir(), "node")
	if err := unix.Mknod(path, unix.S_IFCHR|0o666, int(unix.Mkdev(1, 5))); errors.Is(err, unix.EPERM) {
		need.Skip(t, "this user may make no node")
	} else if err != nil {
		t.Fatal(err)
	}
	if f, err := OpenPlain(path); !errors.Is(err, ErrNotPlain) {
		t.Errorf("got %v, %v; want it refused", f, err)
	}
}

func TestAppendPlainMakesAndContinues(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	for range 2 {
		f, err := AppendPlain(path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteString("x"); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != "xx" {
		t.Errorf("got %q, %v; want xx", got, err)
	}
	if _, err := AppendPlain(filepath.Join(path, "log")); err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("below a file: got %v", err)
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
	dir, _ := traps(t)
	for name, trap := range map[string]string{"stdout": "link", "stderr": "pipe"} {
		if err := os.Rename(filepath.Join(dir, trap), filepath.Join(dir, name+".log")); err != nil {
			t.Fatal(err)
		}
		w := httptest.NewRecorder()
		Handler(Source{LogDir: dir}).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/logs/"+name, nil))
		var f Failure
		if err := json.Unmarshal(w.Body.Bytes(), &f); err != nil || f.Error == "" || bytes.Contains(w.Body.Bytes(), []byte("secret")) {
			t.Errorf("%s: got %d %q, want it refused", name, w.Code, w.Body)
		}
	}
}

// Who wants only the newest is not kept busy by a file of any length, nor at the end.
func TestWatchSkipsWhatIsOld(t *testing.T) {
	path := filepath.Join(t.TempDir(), "stderr.log")
	f, err := AppendPlain(path)
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
