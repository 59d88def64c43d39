package hdfs

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"testing"
	"time"
)

// hangsUp is a NameNode that takes one question, and answers by the end of the connection.
func hangsUp(context.Context, string, string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	go func() {
		defer theirs.Close()
		const greeting = 7
		_, _ = io.ReadFull(theirs, make([]byte, greeting))
		for range 2 { // who we are; the question
			head := make([]byte, 4)
			if _, err := io.ReadFull(theirs, head); err != nil {
				break
			}
			_, _ = io.CopyN(io.Discard, theirs, int64(binary.BigEndian.Uint32(head)))
		}
	}()
	return ours, nil
}

// A file that cannot be gone on with gives its place back, as often as that is tried.
func TestResumeThatFails(t *testing.T) {
	c := clusterOf(Config{Dial: hangsUp}, Conf{}, "x", []string{"x:1"}, identity{user: "u"})
	s := &Store{cluster: c, patience: time.Millisecond}
	for range 3 {
		ended := make(chan struct{})
		close(ended)
		ours, _ := net.Pipe()
		w := &writer{store: s, ctx: t.Context(), path: "/a", closed: true, sum: newSums(), holder: []byte("h")}
		w.block = &block{conn: ours, ended: ended, place: place{id: text(1, []byte("p"))}}
		for range 2 {
			if _, err := w.Resume(t.Context()); err == nil {
				t.Fatal("a NameNode that hangs up is gone on with")
			}
			if w.link != nil || len(c.files) != 0 || w.block == nil {
				t.Errorf("connection kept: %v, places: %d; the block is forgotten: %v", w.link != nil, len(c.files), w.block == nil)
			}
		}
		if err := w.Close(); err == nil {
			t.Error("it is closed as if it were whole")
		}
	}
}
