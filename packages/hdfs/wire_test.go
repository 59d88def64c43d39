package hdfs

import (
	"bytes"
	"encoding/binary"
	"slices"
	"testing"
)

func message(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

func text(id uint64, content []byte) []byte {
	return append(binary.AppendUvarint(binary.AppendUvarint(nil, id<<3|2), uint64(len(content))), content...)
}

func varint(id, n uint64) []byte { return binary.AppendUvarint(binary.AppendUvarint(nil, id<<3), n) }

func piece(b []byte) []byte { return append(binary.AppendUvarint(nil, uint64(len(b))), b...) }

func packet(parts ...[]byte) []byte {
	body := message(parts...)
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...) //nolint:gosec // small
}

// request is one as the library writes it.
func request(method string, body []byte) []byte {
	return packet(piece(message(varint(1, 2), varint(3, 2), text(4, []byte("client")))), piece(text(1, []byte(method))), piece(body))
}

func node(ip, host, uuid string, port uint64) []byte {
	return text(1, message(text(1, []byte(ip)), text(2, []byte(host)), text(3, []byte(uuid)), varint(4, port)))
}

func sent(t *testing.T, r *requests, p []byte) []byte {
	t.Helper()
	out, err := r.outgoing(p)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestALostDataNodeIsLeftOut(t *testing.T) {
	bad := newExcluded()
	r := requests{bad: bad, past: &past{}}
	ask := request("addBlock", text(1, []byte("/a")))
	if got := sent(t, &r, ask); !bytes.Equal(got, ask) {
		t.Error("nothing is left out, and the request is changed")
	}
	a, b := node("10.0.0.1", "a", "u1", 9866), node("10.0.0.2", "b", "u2", 9866)
	block := message(text(1, []byte("block")), varint(2, 0), text(3, a), text(3, b))
	answer := packet(piece(message(varint(1, 1), varint(2, 0))), piece(text(1, block)))
	for _, one := range answer { // as it comes
		r.incoming([]byte{one})
	}
	if want := [][2]string{{"10.0.0.1:9866", "a:9866"}, {"10.0.0.2:9866", "b:9866"}}; !slices.Equal(r.pipeline, want) {
		t.Errorf("got %v, want %v", r.pipeline, want)
	}
	bad.lost("10.0.0.2:9866")
	bad.lost("10.0.0.9:9866") // whom nobody has met
	want := request("addBlock", message(text(1, []byte("/a")), text(4, b)))
	if got := sent(t, &r, ask); !bytes.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	other := request("renewLease", text(1, []byte("/a")))
	if got := sent(t, &r, other); !bytes.Equal(got, other) {
		t.Error("another request is changed")
	}
	bad.reached("10.0.0.2:9866")
	if got := sent(t, &r, ask); !bytes.Equal(got, ask) {
		t.Error("it is back, and left out")
	}
}

// A question that is asked again has the block that the first one had.
func TestTheLastBlockIsNotForgotten(t *testing.T) {
	p := &past{}
	first, later := requests{bad: newExcluded(), past: p}, requests{bad: newExcluded(), past: p} // on two connections
	src, last := text(1, []byte("/a")), text(3, []byte("block"))
	for _, method := range []string{"complete", "addBlock"} {
		again := request(method, src)
		if got := sent(t, &later, again); !bytes.Equal(got, again) {
			t.Errorf("%s: a block was made up: %q", method, got)
		}
		sent(t, &first, request(method, message(src, last)))
		if got, want := sent(t, &later, again), request(method, message(src, last)); !bytes.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", method, got, want)
		}
		if other := request(method, text(1, []byte("/b"))); !bytes.Equal(sent(t, &later, other), other) {
			t.Errorf("%s: another file's block", method)
		}
		p.forget()
		if got := sent(t, &later, again); !bytes.Equal(got, again) {
			t.Errorf("%s: the next file: %q", method, got)
		}
	}
}

func TestARefusalIsHeard(t *testing.T) {
	refusal := packet(piece(message(varint(1, 1), varint(2, 1), text(4, []byte("org.x.AccessControlException")), text(5, []byte("Permission denied: user=bob\n\tat a.b")))))
	token := message([]byte{5, 4, 1, 255, 0, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}, refusal, make([]byte, 12))
	wrapped := packet(piece(message(varint(1, 0xffffffdf), varint(2, 0))), piece(text(3, token)))
	for name, answer := range map[string][]byte{"plain": refusal, "signed": wrapped} {
		r := requests{bad: newExcluded(), past: &past{}}
		r.incoming(append(slices.Clone(answer), answer[:3]...))
		if got := r.said(); got.exception != "org.x.AccessControlException" || got.message != "Permission denied: user=bob" {
			t.Errorf("%s: got %+v", name, got)
		}
		if got := r.said(); got.exception != "" {
			t.Errorf("%s: told twice: %+v", name, got)
		}
	}
}

// Whatever passes by: a request that is not changed stays the same, one that is changed stays whole.
func FuzzWire(f *testing.F) {
	f.Add(request("addBlock", text(1, []byte("/a"))))
	f.Add(packet(piece(message(varint(1, 1), varint(2, 1), text(4, []byte("x")))), piece(nil)))
	f.Add([]byte("hrpc\x09\x00\xdf"))
	f.Fuzz(func(t *testing.T, b []byte) {
		bad := newExcluded()
		bad.met([2]string{"a:1", "b:1"}, []byte("node"))
		bad.lost("a:1")
		r := requests{bad: bad, past: &past{}}
		r.incoming(b)
		if out := sent(t, &r, b); !bytes.Equal(out, b) {
			if int(binary.BigEndian.Uint32(out)) != len(out)-4 || len(out) <= len(b) {
				t.Errorf("%q became %q", b, out)
			}
		}
		r.method = "addBlock"
		r.answer(b)
		signed(b)
	})
}
