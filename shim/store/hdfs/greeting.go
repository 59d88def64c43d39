package hdfs

import (
	"bytes"
	"crypto/subtle"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"
)

// The library shows NameNodes tickets or nothing. Where there is a token it is told to show nothing, and its connection
// greets the NameNode in its place (Hadoop: SaslRpcClient, with DIGEST-MD5 as towards DataNodes):
//
//	hrpc, 9, 0, SASL              →
//	negotiate                     →
//	                              ←  negotiate: the ways to greet, for tokens with a challenge
//	initiate: the token's answer  →
//	                              ←  success: proof
//	what the library says and hears, signed or sealed where the NameNode wants it

// shownToken is a token to greet with, and how it is called.
type shownToken struct {
	token
	from string
}

// credential is the name and password by which a token is shown.
func (t shownToken) credential() digest {
	text := base64.StdEncoding.EncodeToString
	return digest{user: text(t.identifier), password: text(t.password), uri: "/default"}
}

// greeting is a connection to a NameNode that shows a token.
type greeting struct {
	net.Conn
	shown  *shownToken
	least  string // the quality of protection that must be; empty: any will do
	idle   time.Duration
	refuse func(refusal) // hears why the token is not taken

	out, in sealer
	rest    []byte // of the last message
}

const saslInitiate = 2

// Write greets in place of the library's own beginning, which says that nothing is shown.
func (g *greeting) Write(p []byte) (int, error) {
	if bytes.HasPrefix(p, []byte("hrpc")) {
		return len(p), g.greet()
	}
	if g.out.key == nil {
		return g.Conn.Write(p)
	}
	const most = 60 << 10 // of a message: a NameNode takes 64 KiB
	for n := 0; n < len(p); {
		part := p[n:min(n+most, len(p))]
		if _, err := g.Conn.Write(saslMessage(nil, saslWrap, bytesField(3, g.out.wrap(part)[4:]))); err != nil {
			return n, err
		}
		n += len(part)
	}
	return len(p), nil
}

// Read gives what has come, message by message where they are protected.
func (g *greeting) Read(p []byte) (int, error) {
	if g.in.key == nil {
		return g.Conn.Read(p)
	}
	for len(g.rest) == 0 {
		message, err := g.hears(saslWrap)
		if err != nil {
			return 0, err
		}
		if g.rest, err = g.in.open(data(message, 3)); err != nil {
			return 0, fmt.Errorf("protection: %w", err)
		}
	}
	n := copy(p, g.rest)
	g.rest = g.rest[n:]
	return n, nil
}

func (g *greeting) greet() error {
	hello := append([]byte("hrpc\x09\x00\xdf"), saslMessage(nil, saslNegotiate, nil)...)
	if _, err := g.Conn.Write(hello); err != nil {
		return err
	}
	offer, err := g.hears(saslNegotiate)
	if err != nil {
		return err
	}
	weighed := seal{least: g.least}
	if weighed.heard(offer); weighed.weak != nil {
		return weighed.weak
	}
	way, challenge := tokenWay(offer)
	if challenge == nil {
		return fmt.Errorf("%s: the NameNode takes no tokens", g.shown.from)
	}
	d := g.shown.credential()
	answer, err := d.answer(challenge, []string{weighed.offered})
	if err != nil {
		return fmt.Errorf("%s: %w", g.shown.from, err)
	}
	said := append(bytesField(3, []byte(answer)), bytesField(4, way)...)
	if _, err := g.Conn.Write(saslMessage(nil, saslInitiate, said)); err != nil {
		return err
	}
	end, err := g.hears(saslSuccess)
	if err != nil {
		return err
	}
	proof, ok := strings.CutPrefix(string(data(end, 3)), "rspauth=")
	if !ok || subtle.ConstantTimeCompare([]byte(proof), []byte(d.proof(""))) != 1 {
		return fmt.Errorf("%s: the NameNode could not prove that it knows it", g.shown.from)
	}
	g.out, g.in, err = d.sealers()
	return err
}

// tokenWay is how a NameNode is shown tokens, as it is told back, and its challenge; nil: it takes none.
func tokenWay(offer []field) (way, challenge []byte) {
	const method, mechanism, protocol, server, question = 1, 2, 3, 4, 5
	for _, f := range offer {
		one := fields(f.data)
		if f.id != 4 || string(data(one, method)) != "TOKEN" || string(data(one, mechanism)) != "DIGEST-MD5" {
			continue
		}
		for _, id := range []uint64{method, mechanism, protocol, server} {
			way = append(way, bytesField(id, data(one, id))...)
		}
		return way, data(one, question)
	}
	return nil, nil
}

// hears is the next message of the greeting's form, which must be in that state.
func (g *greeting) hears(state uint64) ([]field, error) {
	from := raw{g.Conn, g.idle}
	var head [4]byte
	if _, err := io.ReadFull(from, head[:]); err != nil {
		return nil, err
	}
	size, most := binary.BigEndian.Uint32(head[:]), uint32(mostAnswer)
	if g.in.key == nil {
		most = nameBuffer << 3 // of a peer that has proved nothing yet
	}
	if size > most {
		return nil, fmt.Errorf("got an answer of %d bytes, want %d at most", size, most)
	}
	text := make([]byte, size)
	if _, err := io.ReadFull(from, text); err != nil {
		return nil, err
	}
	header, rest := delimited(text)
	if h := fields(header); number(h, 2) != 0 {
		return nil, g.refusal(string(data(h, 4)), firstLine(string(data(h, 5))))
	}
	message, _ := delimited(rest)
	all := fields(message)
	if message == nil || number(all, 2) != state {
		return nil, fmt.Errorf(
			"%s: got state %d of the NameNode's greeting, want %d", g.shown.from, number(all, 2), state,
		)
	}
	return all, nil
}

// invalidToken is the exception of a token that is not taken.
const invalidToken = "InvalidToken"

// refusal is why a NameNode does not take the token. One in standby knows of no tokens; the other one is asked.
func (g *greeting) refusal(exception, message string) error {
	if strings.HasSuffix(exception, standbyClass) || strings.HasSuffix(exception, "RetriableException") {
		return fmt.Errorf("%s: %s", exception, message)
	}
	text := fmt.Sprintf("%s is not taken: %s", g.shown.from, message)
	g.refuse(refusal{invalidToken, text})
	return errors.New(text)
}
