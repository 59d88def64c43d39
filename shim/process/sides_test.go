package process

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A log of a side process goes on over its starts, is put aside when it is long, and never stops who writes.
func TestSideLog(t *testing.T) {
	var said bytes.Buffer
	log := slog.New(slog.NewTextHandler(&said, nil))
	path := filepath.Join(t.TempDir(), SideLogName("board", "stdout"))
	size := func(path string) int64 {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		return info.Size()
	}
	write := func(l *sideLog, n int) {
		if got, err := l.Write(make([]byte, n)); got != n || err != nil {
			t.Fatalf("write: %d, %v, want %d", got, err, n)
		}
	}
	for range 2 {
		l := &sideLog{log: log, path: path}
		write(l, 3)
		l.close()
	}
	if got := size(path); got != 6 {
		t.Errorf("after two starts %d bytes, want 6", got)
	}
	l := &sideLog{log: log, path: path}
	write(l, mostSideLog-6)
	write(l, 1)
	l.close()
	if old, now := size(path+".1"), size(path); old != mostSideLog || now != 1 {
		t.Errorf("put aside %d bytes, new %d, want %d, 1", old, now, mostSideLog)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/dev/null", path); err != nil {
		t.Fatal(err)
	}
	l = &sideLog{log: log, path: path}
	write(l, 1)
	write(l, 1)
	if got := strings.Count(said.String(), "output of a side process lost"); got != 1 {
		t.Errorf("a log that cannot be written was told %d times, want once:\n%s", got, said.String())
	}
}

// What is waited for at the end: only the end by itself of one whose process ended with 0, and only while nobody stops it.
func TestSideGroupLeaves(t *testing.T) {
	for _, tt := range []struct {
		name string
		do   func(*sideGroup)
		want bool
	}{
		{"while it runs", func(*sideGroup) {}, false},
		{"told to stop, but running", func(g *sideGroup) { g.stop() }, false},
		{"ended with 0", func(g *sideGroup) { g.processOver(true) }, false},
		{"failed", func(g *sideGroup) { g.processOver(false) }, true},
		{"stopped, then ended with 0", func(g *sideGroup) { g.stop(); g.processOver(true) }, true},
		{"ended with 0, then stopped", func(g *sideGroup) { g.processOver(true); g.stop() }, true},
		{"told twice", func(g *sideGroup) { g.processOver(false); g.processOver(true); g.stop() }, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := &sideGroup{over: make(chan struct{}), leave: make(chan struct{})}
			tt.do(g)
			if got := isClosed(g.leave); got != tt.want {
				t.Errorf("leaves at once: %t, want %t", got, tt.want)
			}
		})
	}
}
