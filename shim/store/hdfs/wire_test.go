package hdfs

import (
	"bytes"
	"encoding/binary"
	"io"
	"slices"
	"strings"
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
	return packet(piece(message(varint(1, 2), varint(3, 2), text(4, []byte("client")))), piece(message(text(1, []byte(method)), text(2, []byte("protocol")), varint(3, 1))), piece(body))
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

func answering(r *requests, parts ...[]byte) {
	for _, one := range packet(parts...) { // as it comes
		_ = r.incoming([]byte{one}) // none of them is too long
	}
}

// A question of ours goes in the place of another, and its answer comes to who asked it.
func TestAQuestionInThePlaceOfAnother(t *testing.T) {
	r := requests{questions: &questions{}}
	stands := request("setPermission", text(1, []byte(inPlace)))
	if got := sent(t, &r, stands); !bytes.Equal(got, stands) {
		t.Error("nothing is asked, and the request is changed")
	}
	q := &question{method: "abandonBlock", message: text(2, []byte("/a"))}
	r.questions.set(q)
	for _, other := range [][]byte{request("setPermission", text(1, []byte("/a"))), request("renewLease", text(1, []byte(inPlace)))} {
		if got := sent(t, &r, other); !bytes.Equal(got, other) {
			t.Error("another request is changed")
		}
		answering(&r, piece(message(varint(1, 1), varint(2, 0))), piece(text(1, []byte("other"))))
	}
	if got, want := sent(t, &r, stands), request("abandonBlock", text(2, []byte("/a"))); !bytes.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if q.answered {
		t.Error("another's answer was taken")
	}
	answering(&r, piece(message(varint(1, 1), varint(2, 0))), piece(nil))
	if !q.answered || len(q.answer) != 0 {
		t.Errorf("got %+v", q)
	}
}

// Who makes a file, and its number, are seen in what the library asks.
func TestTheMakerOfAFile(t *testing.T) {
	r := requests{questions: &questions{}}
	sent(t, &r, request("create", message(text(1, []byte("/a")), text(3, []byte("go-hdfs-1")))))
	answering(&r, piece(message(varint(1, 1), varint(2, 0))), piece(text(1, message(varint(1, 2), varint(13, 16387)))))
	if who, file, coded := r.questions.made(); string(who) != "go-hdfs-1" || file != 16387 || coded {
		t.Errorf("got %q, %d, coded: %t", who, file, coded)
	}
	sent(t, &r, request("create", message(text(1, []byte("/b")), text(3, []byte("go-hdfs-1")))))
	answering(&r, piece(message(varint(1, 1), varint(2, 0))), piece(text(1, message(varint(1, 2), varint(13, 16388), text(17, message(varint(4, 4)))))))
	if _, file, coded := r.questions.made(); file != 16388 || !coded {
		t.Errorf("got %d, coded: %t, want a file of stripes", file, coded)
	}
}

func TestPlaceOfABlock(t *testing.T) {
	a, b := node("10.0.0.1", "a", "u1", 9866), node("10.0.0.2", "b", "u2", 9866)
	id := message(text(1, []byte("pool")), varint(2, 7), varint(3, 1001))
	for name, kinds := range map[string][]byte{"packed": text(7, []byte{1, 2}), "one by one": message(varint(7, 1), varint(7, 2))} {
		answer := text(1, message(text(1, id), varint(2, 0), text(3, a), text(3, b), varint(4, 0), text(5, []byte("token")), kinds, text(8, []byte("s1")), text(8, []byte("s2"))))
		p, err := placeOf(answer)
		if err != nil {
			t.Fatal(err)
		}
		if got := addressOf(p.nodes[1]); got != [2]string{"10.0.0.2:9866", "b:9866"} {
			t.Errorf("%s: got %q", name, got)
		}
		if got, want := p.sized(5), message(text(1, []byte("pool")), varint(2, 7), varint(3, 1001), varint(4, 5)); !bytes.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
		ask := p.request([]byte("me"))
		asked, rest := delimited(ask[3:])
		if all := fields(asked); len(rest) > 0 || !bytes.Equal(data(all, 2), b) || number(all, 5) != 2 || number(all, 11) != 1 || number(all, 12) != 2 || string(data(all, 17)) != "s2" {
			t.Errorf("%s: got %q", name, ask)
		}
		if who, _ := blockToken(ask); who != nil { // the token is no message, so it has no name
			t.Errorf("%s: got token %q", name, who)
		}
	}
	for _, answer := range [][]byte{nil, text(1, text(1, id)), text(1, text(3, a)), {10, 200}} {
		if _, err := placeOf(answer); err == nil {
			t.Errorf("%q: it is no block", answer)
		}
	}
}

func TestALostDataNodeIsLeftOut(t *testing.T) {
	a, b := node("10.0.0.1", "a", "u1", 9866), node("10.0.0.2", "b", "u2", 9866)
	bad := newExcluded()
	bad.met(addressOf(a), a)
	bad.met(addressOf(b), b)
	w := writer{path: "/a", holder: []byte("me"), file: 9}
	ask := func() []byte { return w.addBlock(bad.nodes()) }
	first := message(text(1, []byte("/a")), text(2, []byte("me")))
	if got, want := ask(), message(first, varint(5, 9)); !bytes.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	bad.lost("10.0.0.2:9866")
	bad.lost("10.0.0.9:9866") // whom nobody has met
	w.last = []byte("block")
	if got, want := ask(), message(first, text(3, []byte("block")), text(4, b), varint(5, 9)); !bytes.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	bad.reached("10.0.0.2:9866")
	if got, want := ask(), message(first, text(3, []byte("block")), varint(5, 9)); !bytes.Equal(got, want) {
		t.Errorf("it is back, and left out: %q", got)
	}
}

func TestARefusalIsHeard(t *testing.T) {
	refusal := packet(piece(message(varint(1, 1), varint(2, 1), text(4, []byte("org.x.AccessControlException")), text(5, []byte("Permission denied: user=bob\n\tat a.b")))))
	token := message([]byte{5, 4, 1, 255, 0, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}, refusal, make([]byte, 12))
	wrapped := packet(piece(message(varint(1, 0xffffffdf), varint(2, 0))), piece(text(3, token)))
	for name, answer := range map[string][]byte{"plain": refusal, "signed": wrapped} {
		r := requests{questions: &questions{}}
		_ = r.incoming(append(slices.Clone(answer), answer[:3]...))
		if got := r.said(); got.exception != "org.x.AccessControlException" || got.message != "Permission denied: user=bob" {
			t.Errorf("%s: got %+v", name, got)
		}
		if got := r.said(); got.exception != "" {
			t.Errorf("%s: told twice: %+v", name, got)
		}
	}
}

// Whatever passes by: a request that is not changed stays the same, one that is changed is whole.
func FuzzWire(f *testing.F) {
	f.Add(request("setPermission", text(1, []byte(inPlace))))
	f.Add(request("create", text(3, []byte("me"))))
	f.Add(packet(piece(message(varint(1, 1), varint(2, 1), text(4, []byte("x")))), piece(nil)))
	f.Add([]byte("hrpc\x09\x00\xdf"))
	f.Fuzz(func(t *testing.T, b []byte) {
		r := requests{questions: &questions{}}
		r.questions.set(&question{method: "addBlock", message: []byte("\x0a\x02/a")})
		_ = r.incoming(b)
		if out := sent(t, &r, b); !bytes.Equal(out, b) && int(binary.BigEndian.Uint32(out)) != len(out)-4 {
			t.Errorf("%q became %q", b, out)
		}
		r.method = "create"
		r.answer(b)
		signed(b)
		if p, err := placeOf(b); err == nil {
			if _, rest := delimited(p.request([]byte("me"))[3:]); len(rest) > 0 {
				t.Errorf("%q: a request that is not whole", b)
			}
			p.sized(1)
		}
	})
}

// No room is made for what nobody would say.
func TestAnswersAreBounded(t *testing.T) {
	w := newWires(t.Context(), hung(binary.BigEndian.AppendUint32(nil, mostAnswer+1)), newExcluded())
	defer w.close()
	c, err := w.openName(t.Context(), "tcp", "nn:8020")
	if err != nil {
		t.Fatal(err)
	}
	if n, err := io.ReadFull(c, make([]byte, 4)); n != 0 || err == nil || !strings.Contains(err.Error(), "134217729 bytes") {
		t.Errorf("of a NameNode: got %d bytes, %v", n, err)
	}
	r := requests{questions: &questions{}}
	if err := r.incoming(binary.BigEndian.AppendUint32(nil, mostAnswer)); err != nil {
		t.Error(err)
	}
	w = newWires(t.Context(), hung(binary.AppendUvarint(nil, 64<<10+1)), newExcluded())
	defer w.close()
	w.accepted = []string{"auth"}
	d, err := w.toData("tcp", "dn:9866", dataTime, dataBuffer, []field{{id: 1}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Write([]byte{0, 28, 0x50}); err == nil || !strings.Contains(err.Error(), "a greeting of 65537 bytes") {
		t.Errorf("of a DataNode: got %v", err)
	}
}
