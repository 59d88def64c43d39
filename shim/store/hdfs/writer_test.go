package hdfs

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"net"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/muster-agent/muster/shim/store"
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

// A DataNode that refuses stays left out, though connections to it stand; one that was not reached is taken back by
// one.
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

// hung makes connections to a DataNode that takes all that comes, and answers as many messages as it is given.
func hung(answers ...[]byte) func(context.Context, string, string) (net.Conn, error) {
	return func(context.Context, string, string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		go func() {
			for _, one := range answers {
				_, _ = theirs.Write(one)
			}
		}()
		go func() {
			_, _ = io.Copy(io.Discard, theirs)
			_ = theirs.Close()
		}()
		return ours, nil
	}
}

// A DataNode that hangs, before a block stands or after, is waited for as long as it may wait for the others, and left
// out then. So is the one that an answer is about.
func TestDataNodesThatHang(t *testing.T) {
	set := piece(varint(1, 0))
	for _, tt := range []struct {
		name    string
		answers [][]byte
		bad     int
		time    time.Duration
	}{
		{"before the block stands", nil, 0, 75 * time.Second},
		{"after", [][]byte{set}, 0, 75 * time.Second},
		{"the second is not reached by the first", [][]byte{piece(message(varint(1, 1), text(2, []byte("10.0.0.2:1"))))}, 1, 0},
		{"the first takes none", [][]byte{piece(varint(1, 1))}, 0, 0},
		{"the third does not take a packet", [][]byte{set, piece(message(varint(1, 2), varint(2, 0), varint(2, 0), varint(2, 1)))}, 2, 0},
		{"the second is started again", [][]byte{set, piece(message(varint(1, 2), varint(2, 0), varint(2, 8)))}, -1, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := place{id: text(1, []byte("pool")), nodes: [][]byte{node("10.0.0.1", "a", "1", 1), node("10.0.0.2", "b", "2", 1), node("10.0.0.3", "c", "3", 1)}}
				c := &cluster{bad: newExcluded(), dial: hung(tt.answers...)}
				for _, one := range p.nodes {
					c.bad.met(addressOf(one), one)
				}
				c.defaults.BlockSize = 1
				w := &writer{store: &Store{cluster: c}, ctx: t.Context(), link: &link{wires: newWires(t.Context(), c.dial, c.bad)}}
				defer w.link.wires.close()
				begun := time.Now()
				b, err := openBlock(p, "10.0.0.1:1", w.dial(len(p.nodes)), []byte("me"), func([]byte) {})
				if err == nil {
					err = errors.Join(b.write([]byte("x")), b.end())
					b.giveUp()
				}
				if took := time.Since(begun); err == nil || took > tt.time+time.Second || took < tt.time {
					t.Errorf("after %s: %v, want an error after %s", took, err, tt.time)
				}
				w.leaveOut(p, err)
				var want [][]byte
				if tt.bad >= 0 {
					want = p.nodes[tt.bad : tt.bad+1]
				}
				if got := c.bad.nodes(); !slices.EqualFunc(got, want, bytes.Equal) {
					t.Errorf("left out are %q, want %q: %v", got, want, err)
				}
			})
		})
	}
}

// What has been waited for in vain, and would come of a new file, is tried again as one.
func TestWrittenAnew(t *testing.T) {
	lease := condition(refusal{"org.apache.hadoop.hdfs.server.namenode.LeaseExpiredException", "Holder x does not have any open files."})
	for _, tt := range []struct {
		name     string
		err      error
		hopeless bool
	}{
		{"a block that is nowhere", condition(refusal{"x.NotReplicatedYetException", "Not replicated yet: /a"}), true},
		{"a last block that is nowhere", errNotYet, true},
		{"a lease", lease, true},
		{"a NameNode that is away", awayError{"x"}, false},
		{"no permission", fs.ErrPermission, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &Store{cluster: &cluster{name: "x"}, patience: time.Second}
				w := &writer{store: s, ctx: t.Context(), path: "/a"}
				err := s.explain("write", "/a", w.hopeful(s.patiently(t.Context(), "write", "/a", func() error { return tt.err })))
				if store.Transient(err) != tt.hopeless || w.hopeless != tt.hopeless {
					t.Errorf("got %v, to be written anew: %v", err, w.hopeless)
				}
				if !tt.hopeless {
					return
				}
				if _, err := w.Resume(t.Context()); err == nil || store.Transient(err) {
					t.Errorf("resumed: got %v, want that it is written anew", err)
				}
			})
		})
	}
	if !errors.Is(lease, errBusy) || store.Transient(lease) {
		t.Errorf("of a lease: %v", lease)
	}
}

// What one NameNode has refused does not explain what another does later.
func TestRefusalsAreToldOnce(t *testing.T) {
	w := newWires(t.Context(), nil, newExcluded())
	for _, one := range []string{"first", "second"} {
		c := &conn{node: nameNode}
		c.refused = refusal{one, one}
		w.name = append(w.name, c)
	}
	if first, second := w.said(), w.said(); first.exception != "second" || second != (refusal{}) {
		t.Errorf("got %+v, then %+v", first, second)
	}
}

// A DataNode that hears nothing is shown that we are there, until it has the last packet.
func TestSignsOfLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := net.Pipe()
		b := &block{conn: ours, ended: make(chan struct{})}
		over := make(chan struct{})
		go func() {
			defer close(over)
			b.live()
		}()
		d := &dataNodeOf{conn: theirs, in: bufio.NewReader(theirs)}
		for range 2 {
			if seqno, _ := d.packet(t); seqno != idleSeqno {
				t.Errorf("got packet %d", seqno)
			}
		}
		b.mu.Lock()
		b.last = 1
		b.mu.Unlock()
		<-over // it would wait for who reads, else
		_ = ours.Close()
	})
}
