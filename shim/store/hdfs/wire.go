package hdfs

import (
	"encoding/binary"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// The library keeps to itself what a NameNode says when it refuses, and asks only what it needs itself. What it does not tell
// is in the messages of the connection, which are framed alike in both directions (Hadoop: RpcHeader.proto,
// ClientNamenodeProtocol.proto):
//
//	length, 4 bytes | header, delimited | for a request: its name, delimited | message, delimited
//
// Delimited is a length as varint and as many bytes. Numbers below are those of fields in Hadoop's .proto files.

// mostKept is how much of an answer is looked at, in bytes: all of what we look for stands at its beginning.
const mostKept = 256 << 10

// mostAnswer is how long an answer may be, in bytes (Hadoop: ipc.maximum.response.length). The library makes room for whatever it is
// told.
const mostAnswer = 128 << 20

// field is one of a protobuf message: number for varints, data for what is delimited.
type field struct {
	id     uint64
	number uint64
	data   []byte
}

// fields are those of a message, as far as it can be read.
func fields(b []byte) []field {
	var all []field
	for len(b) > 0 {
		tag, n := binary.Uvarint(b)
		if n <= 0 {
			return all
		}
		b = b[n:]
		f := field{id: tag >> 3}
		switch tag & 7 {
		case 0:
			if f.number, n = binary.Uvarint(b); n <= 0 {
				return all
			}
			b = b[n:]
		case 1, 5:
			n = 8
			if tag&7 == 5 {
				n = 4
			}
			if len(b) < n {
				return all
			}
			b = b[n:]
		case 2:
			if f.data, b = delimited(b); f.data == nil {
				return all
			}
		default:
			return all
		}
		all = append(all, f)
	}
	return all
}

// delimited cuts the first delimited piece off; nil: there is none that is whole.
func delimited(b []byte) (piece, rest []byte) {
	size, n := binary.Uvarint(b)
	if n <= 0 || size > uint64(len(b)-n) {
		return nil, nil
	}
	end := n + int(size) //nolint:gosec // below len(b)
	return b[n:end:end], b[end:]
}

// data is the last field of a number.
func data(all []field, id uint64) []byte {
	for _, f := range slices.Backward(all) {
		if f.id == id && f.data != nil {
			return f.data
		}
	}
	return nil
}

func number(all []field, id uint64) uint64 {
	for _, f := range slices.Backward(all) {
		if f.id == id && f.data == nil {
			return f.number
		}
	}
	return 0
}

// The number of calls that belong to the greeting: -33, as an answer and as a request have it.
const (
	saslCall   = 0xffffffdf
	saslZigzag = 65
)

// requests sees what goes to a NameNode and what comes back, one at a time: the library asks nothing before the last
// question is answered.
type requests struct {
	questions *questions
	method    string    // of the last request
	asked     *question // that it stands for; nil: for itself
	seal      *seal     // nil: there is no Kerberos

	mu      sync.Mutex // of what is told to others
	refused refusal

	head []byte // of the answer that is coming
	left int
	kept []byte
}

// refusal is what a NameNode said.
type refusal struct{ exception, message string }

// outgoing is a request as it is to be sent: signed or sealed where that was agreed upon.
func (r *requests) outgoing(p []byte) ([]byte, error) {
	if len(p) < 4 || string(p[:4]) == "hrpc" || uint64(binary.BigEndian.Uint32(p)) != uint64(len(p)-4) {
		return p, nil
	}
	header, rest := delimited(p[4:])
	h := fields(header)
	call := number(h, 3) // zigzag
	if call == saslZigzag {
		r.method, r.asked = "", nil
		return p, nil
	}
	out := r.mended(p, rest, call)
	if r.seal == nil || r.seal.quality == "" {
		return out, nil
	}
	return r.seal.wrap(out, data(h, 4))
}

// mended is a request, or the question of ours that it stands for.
func (r *requests) mended(p, rest []byte, call uint64) []byte {
	r.method, r.asked = "", nil
	if call&1 == 1 { // a negative one belongs to the greeting
		return p
	}
	name, body := delimited(rest)
	about := fields(name)
	r.method = string(data(about, 1))
	message, tail := delimited(body)
	if message == nil || len(tail) > 0 {
		return p
	}
	if r.method == "create" {
		r.questions.wrote(message)
	}
	if r.asked = r.questions.take(r.method, message); r.asked == nil {
		return p
	}
	r.method = r.asked.method
	name = slices.Concat(bytesField(1, []byte(r.method)), bytesField(2, data(about, 2)), numberField(3, number(about, 3)))
	out := slices.Concat(make([]byte, 4), p[4:len(p)-len(rest)], pieceOf(name), pieceOf(r.asked.message))
	binary.BigEndian.PutUint32(out, uint32(len(out)-4)) //nolint:gosec // a request
	return out
}

// incoming is told of the bytes that came. An answer that is too long is an error before anybody makes room for it.
func (r *requests) incoming(p []byte) error {
	for len(p) > 0 {
		if len(r.head) < 4 {
			n := min(4-len(r.head), len(p))
			r.head, p = append(r.head, p[:n]...), p[n:]
			if len(r.head) < 4 {
				return nil
			}
			if size := binary.BigEndian.Uint32(r.head); size > mostAnswer {
				return fmt.Errorf("got an answer of %d bytes, want %d at most", size, mostAnswer)
			}
			r.left, r.kept = int(binary.BigEndian.Uint32(r.head)), r.kept[:0]
		}
		n := min(r.left, len(p))
		if room := mostKept - len(r.kept); room > 0 {
			r.kept = append(r.kept, p[:min(n, room)]...)
		}
		if r.left, p = r.left-n, p[n:]; r.left == 0 {
			r.answer(r.kept)
			r.head = r.head[:0]
			if cap(r.kept) > nameBuffer {
				r.kept = nil
			}
		}
	}
	if r.seal != nil {
		return r.seal.weak
	}
	return nil
}

// answer looks at a whole answer.
func (r *requests) answer(b []byte) {
	header, rest := delimited(b)
	h := fields(header)
	if status := number(h, 2); status != 0 {
		if r.method == renewal { // the library asks it beside everything else
			return
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.refused = refusal{string(data(h, 4)), firstLine(string(data(h, 5)))}
		return
	}
	if uint32(number(h, 1)) == saslCall { //nolint:gosec // 32 bits of it
		message, _ := delimited(rest)
		all := fields(message)
		if r.seal != nil {
			r.seal.heard(all)
		}
		if inner := r.opened(data(all, 3)); inner != nil {
			r.answer(inner)
		}
		return
	}
	if message, _ := delimited(rest); message != nil && r.method != "" {
		r.questions.heard(r.method, r.asked, message)
	}
}

// renewal keeps a file with its writer.
const renewal = "renewLease"

// opened is the answer in a token; nil: it cannot be read.
func (r *requests) opened(token []byte) []byte {
	if r.seal != nil && r.seal.held != nil && len(token) < mostKept/2 {
		if inner := r.seal.open(token); inner != nil {
			return inner
		}
	}
	return signed(token)
}

// signed is the answer in a token that is signed and not encrypted (RFC 4121, 4.2.6.2).
func signed(token []byte) []byte {
	const head = 16
	if len(token) < head+4 || token[0] != 5 || token[1] != 4 || token[2]&2 != 0 {
		return nil
	}
	check := int(binary.BigEndian.Uint16(token[4:]))
	if len(token) < head+4+check || binary.BigEndian.Uint16(token[6:]) != 0 {
		return nil
	}
	return token[head+4 : len(token)-check]
}

// addressOf is that of a DataNode, by its IP address and by its name.
func addressOf(node []byte) [2]string {
	id := fields(data(fields(node), 1))
	port := strconv.FormatUint(number(id, 4), 10)
	return [2]string{net.JoinHostPort(string(data(id, 1)), port), net.JoinHostPort(string(data(id, 2)), port)}
}

// said is what the NameNode refused last, once.
func (r *requests) said() refusal {
	r.mu.Lock()
	defer r.mu.Unlock()
	last := r.refused
	r.refused = refusal{}
	return last
}

// firstLine is what a Java exception says, without where it was thrown.
func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	const most = 400
	if len(line) > most {
		line = strings.ToValidUTF8(line[:most], "") + "…"
	}
	return strings.TrimSpace(line)
}

// Times of DataNodes that are left out.
const (
	leftOut   = 10 * time.Minute // a NameNode holds a lost one for dead after ten and a half
	mostNodes = 10_000           // that are remembered
)

// excluded are the DataNodes of a cluster that were not reached, or took nothing: a NameNode takes minutes to notice that one is
// lost, and does not notice one that hangs or whose disk is full.
type excluded struct {
	mu    sync.Mutex
	known map[string][]byte // by address: the DataNode as the NameNode writes it
	out   map[string]exclusion
}

// exclusion is why a DataNode is left out, and how long. A connection mends that it was not reached; that it takes nothing, it
// does not: a full one takes connections, and a stopped one's system does.
type exclusion struct {
	until   time.Time
	refused bool
}

func newExcluded() *excluded {
	return &excluded{known: map[string][]byte{}, out: map[string]exclusion{}}
}

func (e *excluded) met(addresses [2]string, node []byte) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, a := range addresses {
		if len(e.known) < mostNodes || e.known[a] != nil {
			e.known[a] = slices.Clone(node)
		}
	}
}

// lost leaves a DataNode out for a while that was not reached.
func (e *excluded) lost(address string) { e.leave(address, false) }

// refused leaves a DataNode out for a while that was reached, and did not do what it is for.
func (e *excluded) refused(address string) { e.leave(address, true) }

func (e *excluded) leave(address string, refused bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.out[address] = exclusion{time.Now().Add(leftOut), refused || e.out[address].refused}
}

// reached takes a DataNode back that was not there.
func (e *excluded) reached(address string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.out[address].refused {
		delete(e.out, address)
	}
}

// forget takes all back, and tells whether there were any.
func (e *excluded) forget() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	had := len(e.out) > 0
	clear(e.out)
	return had
}

// nodes are those that are left out.
func (e *excluded) nodes() [][]byte {
	e.mu.Lock()
	defer e.mu.Unlock()
	var all [][]byte
	for address, one := range e.out {
		if time.Now().After(one.until) {
			delete(e.out, address)
		} else if node := e.known[address]; node != nil {
			all = append(all, node)
		}
	}
	return all
}
