package hdfs

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/muster-agent/muster/shim/store"
)

// dataNodeOf is a DataNode that takes one block: what it says to each packet is up to the test.
type dataNodeOf struct {
	conn net.Conn
	in   *bufio.Reader
	got  []byte
}

// packet takes the next packet, as Hadoop's PacketReceiver does.
func (d *dataNodeOf) packet(t *testing.T) (seqno int64, last bool) {
	t.Helper()
	head := make([]byte, 6)
	if _, err := io.ReadFull(d.in, head); err != nil {
		t.Error(err)
		return 0, true
	}
	body := make([]byte, int(binary.BigEndian.Uint32(head))-4+int(binary.BigEndian.Uint16(head[4:])))
	if _, err := io.ReadFull(d.in, body); err != nil {
		t.Error(err)
		return 0, true
	}
	h, rest := body[:headerSize], body[headerSize:]
	offset, size := binary.LittleEndian.Uint64(h[1:]), int(binary.LittleEndian.Uint32(h[21:]))
	sums, content := rest[:len(rest)-size], rest[len(rest)-size:]
	seqno, last = int64(binary.LittleEndian.Uint64(h[10:])), h[19] == 1 //nolint:gosec // the same bits
	if seqno == idleSeqno {
		return seqno, false
	}
	if offset != uint64(len(d.got)) || !bytes.Equal(sums, checksums(nil, content)) || last != (size == 0) {
		t.Errorf("packet %d: offset %d, %d bytes, last %v", seqno, offset, size, last)
	}
	d.got = append(d.got, content...)
	return seqno, last
}

func (d *dataNodeOf) answer(t *testing.T, seqno int64, statuses ...uint64) {
	t.Helper()
	said := varint(1, uint64(seqno<<1^seqno>>63)) //nolint:gosec // zigzag
	for _, one := range statuses {
		said = append(said, varint(2, one)...)
	}
	if _, err := d.conn.Write(piece(said)); err != nil {
		t.Error(err)
	}
}

// written writes a block to a DataNode of the test's, which answers its packets one after another.
func written(t *testing.T, pieces [][]byte, answer func(d *dataNodeOf, seqno int64) bool) (d *dataNodeOf, crcs []byte, err error) {
	t.Helper()
	ours, theirs := net.Pipe()
	d = &dataNodeOf{conn: theirs, in: bufio.NewReader(theirs)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer theirs.Close()
		ask := make([]byte, 3)
		if _, err := io.ReadFull(d.in, ask); err != nil || ask[1] != 28 || ask[2] != 0x50 {
			t.Errorf("asked %v, %v", ask, err)
		}
		size, _ := binary.ReadUvarint(d.in)
		_, _ = io.CopyN(io.Discard, d.in, int64(size)) //nolint:gosec // a request
		_, _ = theirs.Write(piece(varint(1, 0)))
		for over := false; !over; {
			var seqno int64
			seqno, over = d.packet(t)
			if !answer(d, seqno) {
				return
			}
		}
	}()
	p := place{id: text(1, []byte("pool")), nodes: [][]byte{node("10.0.0.1", "a", "u", 1)}}
	b, err := openBlock(p, "10.0.0.1:1", func(string) (net.Conn, error) { return ours, nil }, []byte("me"), func(c []byte) { crcs = append(crcs, c...) })
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range pieces {
		if err = b.write(one); err != nil {
			break
		}
	}
	if err == nil {
		err = b.end()
	}
	b.giveUp()
	<-done
	return d, crcs, err
}

// However a block's bytes come, they arrive in their order with their checksums.
func TestBlock(t *testing.T) {
	content := make([]byte, 3*packetSize+777)
	for i := range content {
		content[i] = byte(i * 7)
	}
	for name, sizes := range map[string][]int{
		"at once": {len(content)}, "nothing": {}, "one byte": {1}, "packets": {packetSize, packetSize},
		"odd": {1, 511, 513, packetSize - 1, packetSize + 1, 3}, "small": {100, 200, 300},
	} {
		t.Run(name, func(t *testing.T) {
			var pieces [][]byte
			var want []byte
			for _, n := range sizes {
				piece := content[len(want):min(len(want)+n, len(content))]
				pieces, want = append(pieces, piece), append(want, piece...)
			}
			d, crcs, err := written(t, pieces, func(d *dataNodeOf, seqno int64) bool { d.answer(t, seqno, 0); return true })
			if err != nil || !bytes.Equal(d.got, want) {
				t.Errorf("got %d bytes, want %d: %v", len(d.got), len(want), err)
			}
			if !bytes.Equal(crcs, checksums(nil, want)) {
				t.Error("the file's sum is of other checksums")
			}
		})
	}
}

// What a DataNode says of a packet is the error, whoever notices it first.
func TestBlockIsRefused(t *testing.T) {
	much := make([]byte, 40*packetSize)
	for _, tt := range []struct {
		name, want string
		answer     func(d *dataNodeOf, seqno int64) bool
	}{
		{"checksum", "ERROR_CHECKSUM", func(d *dataNodeOf, seqno int64) bool {
			if seqno == 2 {
				d.answer(t, seqno, 2)
				return false
			}
			d.answer(t, seqno, 0)
			return true
		}},
		{"cut", "DataNode 10.0.0.1:1", func(*dataNodeOf, int64) bool { return false }},
		{"another's answer", "it answers packet 7, want 1", func(d *dataNodeOf, _ int64) bool { d.answer(t, 7, 0); return false }},
		{"a sign of life first", "ERROR", func(d *dataNodeOf, seqno int64) bool { d.answer(t, idleSeqno, 0); d.answer(t, seqno, 1); return false }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, _, err := written(t, [][]byte{much}, tt.answer)
			if err == nil || !strings.Contains(err.Error(), tt.want) || !errors.Is(err, store.ErrUnreachable) {
				t.Errorf("got %v, want %s", err, tt.want)
			}
		})
	}
}
