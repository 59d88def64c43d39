package sandbox

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

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

// wantReady waits for the line that the holder writes once it stands.
func (h *held) wantReady(t *testing.T) {
	t.Helper()
	if err := h.file.SetReadDeadline(time.Now().Add(watchdog)); err != nil {
		t.Fatal(err)
	}
	got, err := h.text.ReadString('\n')
	if err != nil || got != "ready\n" {
		t.Fatalf("fifo says %q (%v), want ready", got, err)
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

// waitForLine returns when a growing file holds the line; it wakes when the kernel says that the folder changed.
func waitForLine(t *testing.T, path, line string) {
	t.Helper()
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		t.Fatal(err)
	}
	changes := os.NewFile(uintptr(fd), "inotify")
	defer changes.Close()
	if _, err := unix.InotifyAddWatch(fd, filepath.Dir(path), unix.IN_MODIFY|unix.IN_CREATE); err != nil {
		t.Fatal(err)
	}
	if err := changes.SetReadDeadline(time.Now().Add(watchdog)); err != nil {
		t.Fatal(err)
	}
	var text []byte
	for {
		if f, err := os.Open(path); err == nil {
			_, err = f.Seek(int64(len(text)), io.SeekStart)
			more, readErr := io.ReadAll(f)
			if err := errors.Join(err, readErr, f.Close()); err != nil {
				t.Fatal(err)
			}
			from := max(0, len(text)-len(line)-2)
			text = append(text, more...)
			if bytes.Contains(append([]byte("\n"), text[from:]...), []byte("\n"+line+"\n")) {
				return
			}
		}
		if _, err := changes.Read(make([]byte, 4096)); err != nil {
			t.Fatalf("no line %q in %s: %v", line, path, err)
		}
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
