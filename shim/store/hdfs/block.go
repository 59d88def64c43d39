package hdfs

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"sync"
	"time"
)

// The library writes a block with three copies of all that goes through it and waits for DataNodes every 384 KB. So
// blocks are written here (Hadoop: DataTransferProtocol, datatransfer.proto):
//
//	0, 28, 0x50 | OpWriteBlockProto, delimited       →
//	                                                 ←  BlockOpResponseProto, delimited
//	packets: length, 4 bytes | of the header, 2 bytes
//	| PacketHeaderProto | checksums | data           →
//	                                                 ←  for each: PipelineAckProto, delimited
//
// No bytes that were sent are kept: a block whose pipeline breaks is abandoned.

const (
	// headSize is the room for what goes before the data of a packet: lengths, header, checksums.
	headSize = 6 + headerSize + packetSize/chunkSize*4
	// headerSize is that of a PacketHeaderProto: two fixed numbers of 8 bytes, a flag, one of 4 bytes, and their tags.
	headerSize = 9 + 9 + 2 + 5
	// heartbeat is how often a writer without data sends a message. A DataNode closes a silent connection after a
	// minute.
	heartbeat = 20 * time.Second
	// lastWords is how long is listened on a connection that takes nothing any more.
	lastWords = time.Second
	idleSeqno = -1 // of a packet that is only a sign of life
)

// place is a block as the NameNode allocates it.
type place struct {
	id       []byte // ExtendedBlockProto
	token    []byte
	nodes    [][]byte // DatanodeInfoProto
	storages []uint64 // types
	stores   [][]byte // their names
}

func placeOf(answer []byte) (place, error) {
	var p place
	for _, f := range fields(data(fields(answer), 1)) {
		switch {
		case f.id == 1 && f.data != nil:
			p.id = f.data
		case f.id == 3 && f.data != nil:
			p.nodes = append(p.nodes, f.data)
		case f.id == 5 && f.data != nil:
			p.token = f.data
		case f.id == 7:
			p.storages = append(p.storages, numbers(f)...)
		case f.id == 8 && f.data != nil:
			p.stores = append(p.stores, f.data)
		}
	}
	if p.id == nil || len(p.nodes) == 0 {
		return p, errors.New("the NameNode gave a block without DataNodes")
	}
	return p, nil
}

// numbers are those of a repeated field, packed or not.
func numbers(f field) []uint64 {
	if f.data == nil {
		return []uint64{f.number}
	}
	var all []uint64
	for b := f.data; len(b) > 0; {
		n, size := binary.Uvarint(b)
		if size <= 0 {
			break
		}
		all, b = append(all, n), b[size:]
	}
	return all
}

// sized is the block with its length, for a NameNode.
func (p place) sized(bytes int64) []byte {
	all := fields(p.id)
	return slices.Concat( //nolint:gosec // a length
		bytesField(1, data(all, 1)), numberField(2, number(all, 2)), numberField(3, number(all, 3)),
		numberField(4, uint64(bytes)),
	)
}

// request is what the first DataNode is asked for.
func (p place) request(writer []byte) []byte {
	const (
		version, writeOp = 28, 0x50
		setUp, crc32c    = 6, 2 // PIPELINE_SETUP_CREATE
	)
	base := bytesField(1, p.id)
	if p.token != nil {
		base = append(base, bytesField(2, p.token)...)
	}
	message := bytesField(1, slices.Concat(bytesField(1, base), bytesField(2, writer)))
	for _, node := range p.nodes[1:] {
		message = append(message, bytesField(2, node)...)
	}
	for _, f := range [][2]uint64{{4, setUp}, {5, uint64(len(p.nodes))}, {6, 0}, {7, 0}, {8, 0}} {
		message = append(message, numberField(f[0], f[1])...)
	}
	message = append(message, bytesField(9, append(numberField(1, crc32c), numberField(2, chunkSize)...))...)
	if len(p.storages) == len(p.nodes) {
		message = append(message, numberField(11, p.storages[0])...)
		for _, one := range p.storages[1:] {
			message = append(message, numberField(12, one)...)
		}
	}
	if len(p.stores) == len(p.nodes) {
		message = append(message, bytesField(16, p.stores[0])...)
		for _, one := range p.stores[1:] {
			message = append(message, bytesField(17, one)...)
		}
	}
	return append([]byte{0, version, writeOp}, pieceOf(message)...)
}

// block is a block that is being written.
type block struct {
	place   place
	conn    net.Conn
	in      *bufio.Reader
	address string
	sum     func(checksums []byte)

	size  int64  // bytes that were taken
	sent  int64  // of them
	rest  []byte // of them, not sent yet
	head  []byte
	seqno int64

	sending sync.Mutex    // of packets
	ended   chan struct{} // there will be no more answers

	mu     sync.Mutex
	last   int64 // the number of the last packet; 0: not sent yet
	failed error
}

// setUpError is that a pipeline does not stand: nothing of the block has been written.
type setUpError struct {
	bad   string // the address of the DataNode that is the cause, and was reached; empty: not known
	cause error
}

func (e *setUpError) Error() string { return e.cause.Error() }

func (e *setUpError) Unwrap() error { return e.cause }

// ackError is that one of a block's DataNodes did not take a packet, though it was reached.
type ackError struct {
	at    int // its number, from 0 on
	cause error
}

func (e *ackError) Error() string { return e.cause.Error() }

func (e *ackError) Unwrap() error { return e.cause }

// openBlock has the DataNodes of a block make room for it.
func openBlock(
	p place, address string, dial func(address string) (net.Conn, error), writer []byte, sum func([]byte),
) (*block, error) {
	conn, err := dial(address)
	if err != nil {
		return nil, &setUpError{cause: err}
	}
	b := &block{
		place: p, conn: conn, address: address, sum: sum, in: bufio.NewReader(conn), seqno: 1, head: make(
			[]byte, headSize,
		), ended: make(chan struct{}),
	}
	if err := b.begin(writer); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	go b.hear()
	go b.live()
	return b, nil
}

func (b *block) begin(writer []byte) error {
	if _, err := b.conn.Write(b.place.request(writer)); err != nil {
		return &setUpError{b.address, err}
	}
	said, err := b.message()
	if lost, ok := errors.AsType[*nodeError](err); ok && errors.Is(lost.cause, io.EOF) {
		return &setUpError{b.address, &nodeError{dataNode, b.address, errTookNone}}
	}
	if err != nil { // a broken node behind it would have been reported by now
		return &setUpError{b.address, err}
	}
	if status := number(said, 1); status != 0 {
		text := statusText(status)
		if why := firstLine(string(data(said, 5))); why != "" {
			text += ": " + why
		}
		bad := cmp.Or(string(data(said, 2)), b.address) // firstBadLink; none is itself
		return &setUpError{bad, &nodeError{dataNode, b.address, errors.New(text)}}
	}
	return nil
}

// message is the next message of the DataNode.
func (b *block) message() ([]field, error) {
	const most = 1 << 20
	size, err := binary.ReadUvarint(b.in)
	if err == nil && size > most {
		err = fmt.Errorf("got a message of %d bytes", size)
	}
	message := make([]byte, min(size, most))
	if err == nil {
		_, err = io.ReadFull(b.in, message)
	}
	if err != nil {
		if _, told := errors.AsType[*nodeError](err); !told {
			err = &nodeError{dataNode, b.address, err}
		}
		return nil, err
	}
	return fields(message), nil
}

// write takes bytes. They have been written when end has returned.
func (b *block) write(p []byte) error {
	b.size += int64(len(p))
	for len(p) > 0 {
		if len(b.rest) == 0 && len(p) >= packetSize {
			if err := b.send(p[:packetSize], false); err != nil {
				return err
			}
			p = p[packetSize:]
			continue
		}
		if b.rest == nil {
			b.rest = make([]byte, 0, packetSize)
		}
		n := min(packetSize-len(b.rest), len(p))
		b.rest, p = append(b.rest, p[:n]...), p[n:]
		if len(b.rest) == packetSize {
			if err := b.flush(); err != nil {
				return err
			}
		}
	}
	return nil
}

func (b *block) flush() error {
	if len(b.rest) == 0 {
		return nil
	}
	err := b.send(b.rest, false)
	b.rest = b.rest[:0]
	return err
}

// end sends the rest, and waits until all DataNodes have the block.
func (b *block) end() error {
	if err := b.flush(); err != nil {
		return err
	}
	if err := b.send(nil, true); err != nil {
		return err
	}
	<-b.ended
	return errors.Join(b.failure(), b.conn.Close())
}

// send sends a packet; the last one has no data.
func (b *block) send(p []byte, last bool) error {
	b.sending.Lock()
	defer b.sending.Unlock()
	if err := b.failure(); err != nil {
		return err
	}
	seqno := b.seqno
	b.seqno++
	if last {
		b.mu.Lock()
		b.last = seqno
		b.mu.Unlock()
	}
	head := checksums(b.head[:6+headerSize], p)
	b.sum(head[6+headerSize:])
	header(head, b.sent, seqno, last, len(p))
	b.sent += int64(len(p))
	return b.put(head, p)
}

// header fills in what a packet begins with. The length does not count the header.
func header(head []byte, offset, seqno int64, last bool, size int) {
	binary.BigEndian.PutUint32(head, uint32(4+len(head)-6-headerSize+size)) //nolint:gosec // of a packet
	binary.BigEndian.PutUint16(head[4:], headerSize)
	h := head[6:6]
	h = binary.LittleEndian.AppendUint64(append(h, 1<<3|1), uint64(offset)) //nolint:gosec // the same bits
	h = binary.LittleEndian.AppendUint64(append(h, 2<<3|1), uint64(seqno))  //nolint:gosec // as above
	h = append(h, 3<<3, 0)
	if last {
		h[len(h)-1] = 1
	}
	binary.LittleEndian.AppendUint32(append(h, 4<<3|5), uint32(size)) //nolint:gosec // of a packet
}

func (b *block) put(parts ...[]byte) error {
	for _, part := range parts {
		if len(part) == 0 {
			continue
		}
		if _, err := b.conn.Write(part); err != nil {
			b.listen()
			b.fail(err)
			return b.failure()
		}
	}
	return nil
}

// listen waits for the message of a DataNode that accepts no more data: it may name the reason.
func (b *block) listen() {
	timer := time.NewTimer(lastWords)
	defer timer.Stop()
	select {
	case <-b.ended:
	case <-timer.C:
		_ = b.conn.Close() // it is of no use
		<-b.ended
	}
}

// live shows the DataNode that we are there.
func (b *block) live() {
	ticker := time.NewTicker(heartbeat)
	defer ticker.Stop()
	sign := make([]byte, 6+headerSize)
	header(sign, 0, idleSeqno, false, 0)
	for {
		select {
		case <-b.ended:
			return
		case <-ticker.C:
			b.sending.Lock()
			b.mu.Lock()
			over := b.last != 0
			b.mu.Unlock()
			if !over { // a DataNode that has the last packet reads no more, and a further packet would cut its answer
				_ = b.put(sign) // the next write reports it
			}
			b.sending.Unlock()
			if over {
				return
			}
		}
	}
}

// hear takes the answers, until the last one or the first that is none.
func (b *block) hear() {
	defer close(b.ended)
	for want := int64(1); ; {
		said, err := b.message()
		if lost, ok := errors.AsType[*nodeError](err); ok && errors.Is(lost.cause, os.ErrDeadlineExceeded) {
			err = &ackError{0, err} // it hangs: it would have reported another node by now
		}
		if err != nil {
			b.fail(err)
			return
		}
		got := number(said, 1)
		seqno := int64(got>>1) ^ -int64(got&1) //nolint:gosec // zigzag
		if err := b.refused(said); err != nil {
			b.fail(err)
			return
		}
		if seqno == idleSeqno {
			continue
		}
		if seqno != want {
			b.fail(&nodeError{dataNode, b.address, fmt.Errorf("it answers packet %d, want %d", seqno, want)})
			return
		}
		b.mu.Lock()
		over := want == b.last
		b.mu.Unlock()
		if over {
			return
		}
		want++
	}
}

// restarts is the first of the statuses of a DataNode that restarts (OOB_RESTART and those after it).
const restarts = 8

// refused tells which DataNode did not take a packet.
func (b *block) refused(said []field) error {
	at := 0
	for _, f := range said {
		if f.id != 2 {
			continue
		}
		for _, status := range numbers(f) {
			if status != 0 {
				err := &nodeError{
					dataNode, b.address, fmt.Errorf(
						"number %d of the block's %d DataNodes says %s", at+1, len(b.place.nodes), statusText(status),
					),
				}
				if status >= restarts {
					return err
				}
				return &ackError{at, err}
			}
			at++
		}
	}
	return nil
}

// statusText is the name of a status (datatransfer.proto).
func statusText(status uint64) string {
	names := []string{
		"SUCCESS", "ERROR", "ERROR_CHECKSUM", "ERROR_INVALID", "ERROR_EXISTS", "ERROR_ACCESS_TOKEN", "CHECKSUM_OK",
		"ERROR_UNSUPPORTED", "OOB_RESTART",
	}
	if status < uint64(len(names)) {
		return names[status]
	}
	return fmt.Sprintf("status %d", status)
}

// fail notes the first failure, and cuts the connection.
func (b *block) fail(err error) {
	b.mu.Lock()
	if b.failed == nil {
		b.failed = err
	}
	b.mu.Unlock()
	_ = b.conn.Close() // of no use any more
}

func (b *block) failure() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.failed
}

// giveUp ends what runs beside us.
func (b *block) giveUp() {
	b.fail(net.ErrClosed)
	<-b.ended
}
