package hdfs

import (
	"encoding/binary"
	"fmt"
	"slices"
	"sync"
)

// The library drops the text of a NameNode's refusal, and some answers that muster needs. They are in the messages of
// the connection, which are framed alike in both directions (Hadoop: RpcHeader.proto, ClientNamenodeProtocol.proto):
//
//	length, 4 bytes | header, delimited | for a request: its name, delimited | message, delimited
//
// Delimited is a length as varint and as many bytes. Numbers below are those of fields in Hadoop's .proto files.

// mostKept is how much of an answer is parsed, in bytes: what muster needs is at its beginning.
const mostKept = 256 << 10

// mostAnswer is the limit of an answer, in bytes (Hadoop: ipc.maximum.response.length). The library allocates whatever
// length it reads.
const mostAnswer = 128 << 20

// The number of calls that belong to the greeting: -33, as an answer and as a request have it.
const (
	saslCall   = 0xffffffdf
	saslZigzag = 65
)

// nameBuffer is how much is read at once from a NameNode, in bytes.
const nameBuffer = 8 << 10

// requests sees what goes to a NameNode and what comes back, one at a time: the library asks nothing before the last
// question is answered.
type requests struct {
	questions *questions
	method    string    // of the last request
	asked     *question // the request that it stands for; nil: itself
	seal      *seal     // nil: there is no Kerberos

	mu      sync.Mutex // guards the fields below
	refused refusal

	head []byte // of the answer that is coming
	left int
	kept []byte
}

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

// mended is a request, or our request that it stands for.
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
	name = slices.Concat(
		bytesField(1, []byte(r.method)), bytesField(2, data(about, 2)), numberField(3, number(about, 3)),
	)
	out := slices.Concat(make([]byte, 4), p[4:len(p)-len(rest)], pieceOf(name), pieceOf(r.asked.message))
	binary.BigEndian.PutUint32(out, uint32(len(out)-4)) //nolint:gosec // a request
	return out
}

// incoming takes the bytes that arrive. An answer that is too long is an error before memory is allocated for it.
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

// answer parses a complete answer.
func (r *requests) answer(b []byte) {
	header, rest := delimited(b)
	h := fields(header)
	if status := number(h, 2); status != 0 {
		if r.method == renewal { // the library asks it beside everything else
			return
		}
		r.refuse(refusal{string(data(h, 4)), firstLine(string(data(h, 5)))})
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

// refuse notes a refusal.
func (r *requests) refuse(said refusal) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.refused = said
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

// said is the NameNode's last refusal, once.
func (r *requests) said() refusal {
	r.mu.Lock()
	defer r.mu.Unlock()
	last := r.refused
	r.refused = refusal{}
	return last
}
