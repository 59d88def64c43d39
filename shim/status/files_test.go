package status

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/muster-agent/muster/tests/need"
)

func TestStateDir(t *testing.T) {
	for _, c := range []struct {
		uid        int
		runtimeDir string
		want       string
	}{
		{0, "", "/run/muster"},
		{0, "/run/user/0", "/run/muster"},
		{1000, "/run/user/1000", "/run/user/1000/muster"},
		{1000, "", "/tmp/muster-1000"},
	} {
		if got := StateDir(c.uid, c.runtimeDir); got != c.want {
			t.Errorf("StateDir(%d, %q) = %q, want %q", c.uid, c.runtimeDir, got, c.want)
		}
	}
}

func TestOtherUsers(t *testing.T) {
	need.Root(t)
	top := t.TempDir()
	for dir, uid := range map[string]int{
		"tmp/muster-1000/apps/a": 1000, "tmp/muster-1001/apps/a": 1002, "tmp/muster-1003/apps": 1003, "tmp/muster-1004/apps/a": 0,
		"run/user/1005/muster/apps/b": 1005, "run/user/1006/muster/apps/b": 1005, "run/muster/apps/c": 0,
	} {
		at := filepath.Join(top, dir)
		if err := os.MkdirAll(at, 0o700); err != nil {
			t.Fatal(err)
		}
		for at != top {
			if err := os.Chown(at, uid, -1); err != nil {
				t.Fatal(err)
			}
			at = filepath.Dir(at)
		}
	}
	want := []Dir{Dir(filepath.Join(top, "run/user/1005/muster")), Dir(filepath.Join(top, "tmp/muster-1000"))}
	if got := OtherUsers(top); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestOpenIsPrivate(t *testing.T) {
	d := Dir(filepath.Join(t.TempDir(), "state"))
	if err := d.Open(); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(string(d))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := info.Mode().Perm(), fs.FileMode(0o700); got != want {
		t.Errorf("mode %o, want %o", got, want)
	}
}

// What is in the state folder is killed and removed by root: nobody else may put another in its place.
func TestStateFolderThatAnotherCanReplace(t *testing.T) {
	need.Root(t)
	theirs := filepath.Join(t.TempDir(), "theirs")
	d := Dir(filepath.Join(theirs, "roots", "state"))
	if err := errors.Join(os.MkdirAll(filepath.Dir(string(d)), 0o755), os.Chown(theirs, 64001, 64001)); err != nil {
		t.Fatal(err)
	}
	if err := d.Open(); err == nil || !strings.Contains(err.Error(), "belongs to uid 64001") {
		t.Errorf("got %v", err)
	}
}

// A process that is somebody else finds the socket that it was told of, and nothing beside it.
func TestAdmit(t *testing.T) {
	need.Root(t)
	top, err := os.MkdirTemp("", "ms-") //nolint:usetesting // another user must get there
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(top)
	d := Dir(filepath.Join(top, "agents", "state"))
	if err := errors.Join(os.Chmod(top, 0o755), d.Open()); err != nil {
		t.Fatal(err)
	}
	socket := d.Socket("d1", "worker-0")
	l, err := Listen(socket)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	sees := func(uid uint32, test, path string) bool {
		cmd := exec.CommandContext(t.Context(), "test", test, path)
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
		return cmd.Run() == nil
	}
	if sees(4242, "-w", socket) {
		t.Error("a stranger may write to a socket that nobody gave away")
	}
	for range 2 { // another agent opens the folder meanwhile
		if err := errors.Join(d.Admit(socket, 4242, 4242), d.Open()); err != nil {
			t.Fatal(err)
		}
		if !sees(4242, "-w", socket) {
			t.Error("who was admitted cannot write to the socket")
		}
		if sees(4243, "-w", socket) {
			t.Error("others can too")
		}
		if sees(4242, "-r", string(d)) || sees(4242, "-r", d.App("d1")) {
			t.Error("who was admitted may look around")
		}
	}
	if info, err := os.Stat(top); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("above the folder: %v, %v", info, err)
	}
}

func TestOpenRefusesAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Dir(path).Open(); err == nil {
		t.Error("got no error for a file")
	}
}

// Whatever the names, a socket's path fits, as long as the state folder itself is short enough.
func TestSocketFits(t *testing.T) {
	d := Dir("/run/muster")
	if got, want := d.Socket("d1", "worker-1"), "/run/muster/apps/d1/worker-1.sock"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	seen := map[string]bool{}
	for n := range 64 {
		for m := range 64 {
			path := d.Socket("a"+strings.Repeat("x", n), strings.Repeat("y", m)+"-0")
			if len(path) > MaxSocket {
				t.Fatalf("%d bytes: %s", len(path), path)
			}
			if seen[path] {
				t.Fatalf("two instances share %s", path)
			}
			seen[path] = true
		}
	}
	long := d.Socket(strings.Repeat("a", 63), strings.Repeat("b", 63)+"-0")
	if dir := filepath.Dir(long); dir != "/run/muster/s" || len(filepath.Base(long)) != 16+len(".sock") {
		t.Errorf("long names: got %s, want /run/muster/s/<16 hex>.sock", long)
	}
}

func TestApps(t *testing.T) {
	d := Dir(t.TempDir())
	if got, err := d.Apps(); err != nil || len(got) != 0 {
		t.Errorf("nothing there: got %v, %v", got, err)
	}
	started := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for i, name := range []string{"old", "new", "older"} {
		file := AppFile{Version: 1, App: name, Started: started.Add([]time.Duration{0, time.Hour, -time.Hour}[i])}
		if err := WriteJSON(filepath.Join(d.App(name), "app.json"), file); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(d.App("unfinished"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(d.App("corrupt"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(d.App("corrupt"), "app.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	apps, err := d.Apps()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, a := range apps {
		names = append(names, a.App)
	}
	if diff := cmp.Diff(names, []string{"new", "old", "older"}); diff != "" {
		t.Errorf("the newest first (-got +want):\n%s", diff)
	}
}

func TestSockets(t *testing.T) {
	d := Dir("/nowhere")
	if got := d.Sockets("d1"); len(got) != 0 {
		t.Errorf("no folder: got %v", got)
	}
	d = Dir(t.TempDir())
	for _, name := range []string{"app", "result", "worker-0", "ps-1"} {
		if err := WriteJSON(filepath.Join(d.App("d1"), name+".json"), InstanceFile{Version: 1}); err != nil {
			t.Fatal(err)
		}
	}
	want := map[string]string{"worker-0": d.Socket("d1", "worker-0"), "ps-1": d.Socket("d1", "ps-1")}
	if diff := cmp.Diff(d.Sockets("d1"), want); diff != "" {
		t.Errorf("(-got +want):\n%s", diff)
	}
}

func TestWriteJSON(t *testing.T) {
	path := filepath.Join(t.TempDir(), "deep", "result.json")
	for _, want := range []string{"first", "second"} {
		if err := WriteJSON(path, map[string]string{"cause": want}); err != nil {
			t.Fatal(err)
		}
		var got map[string]string
		if err := ReadJSON(path, &got); err != nil || got["cause"] != want {
			t.Errorf("got %v, %v, want %s", got, err, want)
		}
	}
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(entries) != 1 {
		t.Errorf("left beside it: %v, %v", entries, err)
	}
}

func TestWriteJSONLeavesWhatWasThere(t *testing.T) {
	path := filepath.Join(t.TempDir(), "result.json")
	if err := os.MkdirAll(filepath.Join(path, "in the way"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := WriteJSON(path, 1); err == nil {
		t.Error("got no error for a folder in the way")
	}
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(entries) != 1 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
	if err := WriteJSON(filepath.Join(t.TempDir(), "x"), func() {}); err == nil {
		t.Error("got no error for what has no JSON")
	}
}

func TestReadJSONNamesTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "app.json")
	var into AppFile
	if err := ReadJSON(path, &into); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing: got %v, want fs.ErrNotExist", err)
	}
	if err := os.WriteFile(path, []byte(`{"version": "x"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := ReadJSON(path, &into); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("corrupt: got %v, want an error with %s", err, path)
	}
}

func TestListen(t *testing.T) {
	d := Dir(t.TempDir())
	path := d.Socket("d1", "worker-0")
	l, err := Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("socket: %v, %v, want mode 600", info, err)
	}
	if _, err := Listen(path); err == nil || !strings.Contains(err.Error(), "another agent") {
		t.Errorf("a second agent: got %v, want a refusal", err)
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false) // as SIGKILL leaves it
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	l, err = Listen(path)
	if err != nil {
		t.Fatalf("in place of a dead agent's: %v", err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if _, err := Listen(filepath.Join(string(d), strings.Repeat("x", 200))); err == nil || !strings.Contains(err.Error(), "--state-dir") {
		t.Errorf("a long path: got %v, want what to do", err)
	}
}

func TestParseSignal(t *testing.T) {
	for text, want := range map[string]int{"KILL": 9, "SIGKILL": 9, "sigterm": 15, "usr1": 10, "9": 9, "64": 64} {
		if got, err := ParseSignal(text); got != want || err != nil {
			t.Errorf("ParseSignal(%q) = %d, %v, want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "0", "65", "-9", "FOO", "SIG", "SIGSIGKILL", "9.0"} {
		if got, err := ParseSignal(text); err == nil {
			t.Errorf("ParseSignal(%q) = %d, want an error", text, got)
		}
	}
}
