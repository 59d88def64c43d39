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

// A DataNode that refuses stays left out, though connections to it stand; one that was not reached is taken back by one.
func TestLeftOut(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	there := node("127.0.0.1", "localhost", "u", uint64(l.Addr().(*net.TCPAddr).Port)) //nolint:gosec,forcetypeassert // a TCP port
	address := addressOf(there)[0]
	c := &cluster{bad: newExcluded()}
	c.bad.met(addressOf(there), there)
	w := &writer{store: &Store{cluster: c}, ctx: t.Context()}
	p := place{nodes: [][]byte{there}}
	w.leaveOut(p, &setUpError{address, errTookNone})
	if got := len(c.bad.nodes()); got != 1 {
		t.Errorf("refused: %d are left out, want 1", got)
	}
	c.bad.lost(address)
	c.bad.reached(address)
	if got := len(c.bad.nodes()); got != 1 {
		t.Errorf("refused, and reached: %d are left out, want 1", got)
	}
	if !c.bad.forget() || len(c.bad.nodes()) != 0 {
		t.Error("not taken back, where there are no others")
	}
	c.bad.lost(address)
	if w.leaveOut(p, &setUpError{cause: errTookNone}); len(c.bad.nodes()) != 0 {
		t.Error("one that was lost and is there again stays left out")
	}
}
