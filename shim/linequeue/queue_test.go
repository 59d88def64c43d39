package linequeue

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"
)

func lost(n int) []byte { return fmt.Appendf(nil, "%d dropped\n", n) }

// TestNobodyReads: behind a FIFO that nobody reads, adding goes on without end, and the queue ends in its time. Once it
// is read, the lines come in their order, and what is missing is counted.
func TestNobodyReads(t *testing.T) {
	path := t.TempDir() + "/fifo"
	if err := unix.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	fifo, err := os.OpenFile(path, os.O_RDWR, 0) // it has a reader, who does not read
	if err != nil {
		t.Fatal(err)
	}
	written := make(chan struct{})
	count := 0
	const added = 100_000
	q := New(func(b []byte) {
		_, _ = fifo.Write(b)
		if count++; count == 1 {
			close(written)
		}
	}, lost)
	for i := range added {
		q.Add(fmt.Appendf(nil, "line %d\n", i))
	}
	<-written
	q.Close(time.Millisecond) // it hangs: it is left behind

	read := make(chan []byte)
	go func() {
		var all []byte
		b := make([]byte, 64<<10)
		for !bytes.HasSuffix(all, []byte("end\n")) {
			n, err := fifo.Read(b)
			if all = append(all, b[:n]...); err != nil {
				break
			}
		}
		read <- bytes.TrimSuffix(all, []byte("end\n"))
	}()
	go func() { <-q.done; _, _ = fifo.WriteString("end\n") }()
	var all []byte
	select {
	case all = <-read:
	case <-time.After(30 * time.Second):
		t.Fatal("the lines did not come")
	}
	_ = fifo.Close()
	next := 0
	for line := range strings.SplitSeq(strings.TrimSpace(string(all)), "\n") {
		n := 0
		if _, err := fmt.Sscanf(line, "%d dropped", &n); err == nil {
			next += n
		} else if line == fmt.Sprintf("line %d", next) {
			next++
		} else {
			t.Fatalf("got %q, want line %d or what was dropped", line, next)
		}
	}
	if next != added {
		t.Errorf("%d lines are written or counted, want %d", next, added)
	}
}

// TestClose: what was added is written before Close returns, and a writer that hangs is waited for only so long.
func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got bytes.Buffer
		q := New(func(b []byte) { time.Sleep(time.Millisecond); got.Write(b) }, lost)
		for range 100 {
			q.Add([]byte("x"))
		}
		q.Close(time.Second)
		if got.Len() != 100 {
			t.Errorf("got %d lines, want 100", got.Len())
		}
		q.Close(time.Second) // a second time is nothing

		hang := make(chan struct{})
		h := New(func([]byte) { <-hang }, lost)
		h.Add([]byte("x"))
		began := time.Now()
		h.Close(time.Second)
		if waited := time.Since(began); waited != time.Second {
			t.Errorf("waited %s, want 1s", waited)
		}
		close(hang)
	})
}
