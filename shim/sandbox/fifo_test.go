package sandbox

import (
	"bufio"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/muster-agent/muster/shim/sandbox/guard"
)

// held is the reading end of a fifo whose writers are the processes under test: its end is the proof that none lives.
type held struct {
	file *os.File
	own  *os.File // a writer of our own until the first line: before there is no end to see
	text *bufio.Reader
}

func fifoOnly(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(dir, "alive"), 0o666); err != nil {
		t.Fatal(err)
	}
	return dir
}

func openFifo(t *testing.T, path string) *held {
	t.Helper()
	// O_NONBLOCK: opening waits for nobody, and reading waits in Go's poller, under a deadline.
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	own, err := os.OpenFile(path, os.O_WRONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close(); own.Close() })
	return &held{f, own, bufio.NewReader(f)}
}

func (h *held) wantLine(t *testing.T, want string) {
	t.Helper()
	if err := h.file.SetReadDeadline(time.Now().Add(watchdog)); err != nil {
		t.Fatal(err)
	}
	got, err := h.text.ReadString('\n')
	if err != nil || got != want+"\n" {
		t.Fatalf("fifo says %q (%v), want %q", got, err, want)
	}
	h.own.Close()
}

func (h *held) wantEnd(t *testing.T) {
	t.Helper()
	if err := h.file.SetReadDeadline(time.Now().Add(watchdog)); err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(h.text)
	if err != nil {
		t.Fatalf("somebody still holds the fifo: %v", err)
	}
	if len(rest) > 0 {
		t.Errorf("fifo says %q", rest)
	}
}

// nobody is an unprivileged user where the test may choose one; limits per user bind only such.
func nobody(t *testing.T) *guard.User {
	t.Helper()
	if os.Geteuid() != 0 {
		return nil
	}
	return &guard.User{UID: 64999, GID: 64999}
}
