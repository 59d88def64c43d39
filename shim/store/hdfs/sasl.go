package hdfs

import (
	"cmp"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/md5" //nolint:gosec // DIGEST-MD5 is what DataNodes speak
	"crypto/rand"
	"crypto/rc4" //nolint:gosec // as above: without AES it is the best that both sides know
	"crypto/subtle"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Data to and from DataNodes is protected by DIGEST-MD5 (RFC 2831), with a block's token for a password, and by AES if
// both sides know it (Hadoop: DataTransferSaslUtil, SaslParticipant). The library knows it, too, but misreads the
// greeting of a present DataNode, which comes in more than one message. So the library is told that there is no
// protection, and a connection greets the DataNode itself when it sees the request, which contains the token:
//
//	DEADBEEF, hello     →
//	                    ←  challenge: nonce, qop, ciphers
//	response, [AES?]    →
//	                    ←  proof, [keys of AES, sealed]
//	the request, protected, and all that follows

// nodeURI is the service of a DataNode.
const nodeURI = "hdfs/0"

// blockToken is the token in a request to a DataNode; nil: there is none.
func blockToken(request []byte) (identifier, password []byte) {
	if len(request) < 3 {
		return nil, nil
	}
	const checksumOp = 0x55
	message, _ := delimited(request[3:])
	header := data(fields(message), 1)
	if request[2] != checksumOp { // the others have a client's name around it
		header = data(fields(header), 1)
	}
	token := fields(data(fields(header), 2))
	return data(token, 1), data(token, 2)
}

// digest is one greeting.
type digest struct {
	user, password       string
	uri                  string // of the service; empty: a DataNode's
	realm, nonce, cnonce string
	quality              string
}

var directive = regexp.MustCompile(`([a-z-]+)=("((?:[^"\\]|\\.)*)"|[^,]*)`)

// directives are the directives of a challenge or its answer.
func directives(text []byte) map[string]string {
	said := map[string]string{}
	for _, m := range directive.FindAllStringSubmatch(string(text), -1) {
		value := m[2]
		if strings.HasPrefix(value, `"`) {
			value = m[3]
		}
		said[m[1]] = value
	}
	return said
}

// answer answers a challenge. accepted are the qualities that will do.
func (d *digest) answer(challenge []byte, accepted []string) (string, error) {
	said := directives(challenge)
	d.realm, d.nonce = said["realm"], said["nonce"]
	offered := strings.Split(said["qop"], ",")
	at := slices.IndexFunc(offered, func(q string) bool { return slices.Contains(accepted, strings.TrimSpace(q)) })
	if d.nonce == "" || at < 0 {
		return "", fmt.Errorf("got protection %q, want one of %q", said["qop"], accepted)
	}
	d.quality = strings.TrimSpace(offered[at])
	d.cnonce = rand.Text()
	text := fmt.Sprintf(`charset=utf-8,username="%s",realm="%s",nonce="%s",nc=00000001,cnonce="%s",`+
		`digest-uri="%s",maxbuf=65536,response=%s,qop=%s`,
		d.user, d.realm, d.nonce, d.cnonce, d.service(), d.proof("AUTHENTICATE"), d.quality)
	if d.quality == "auth-conf" {
		if !slices.Contains(strings.Split(said["cipher"], ","), "rc4") {
			return "", fmt.Errorf("got ciphers %q, want rc4", said["cipher"])
		}
		text += ",cipher=rc4"
	}
	return text, nil
}

func sum(parts ...string) []byte {
	h := md5.Sum([]byte(strings.Join(parts, ":"))) //nolint:gosec // see above
	return h[:]
}

func (d *digest) service() string { return cmp.Or(d.uri, nodeURI) }

// key is what both sides know: H(A1).
func (d *digest) key() []byte {
	return sum(string(sum(d.user, d.realm, d.password)), d.nonce, d.cnonce)
}

// proof is that one side knows it; the node's is without the word.
func (d *digest) proof(word string) string {
	a2 := word + ":" + d.service()
	if d.quality != "auth" {
		a2 += ":" + strings.Repeat("0", 32)
	}
	return hex.EncodeToString(sum(
		hex.EncodeToString(d.key()), d.nonce, "00000001", d.cnonce, d.quality, hex.EncodeToString(sum(a2)),
	))
}

// derived is a key for one direction and purpose.
func (d *digest) derived(direction, purpose string) []byte {
	words := "Digest session key to " + direction + " signing key magic constant"
	if purpose == "seal" {
		words = "Digest H(A1) to " + direction + " sealing key magic constant"
	}
	h := md5.Sum(append(d.key(), words...)) //nolint:gosec // see above
	return h[:]
}

// protected is a connection to a DataNode that greets it before the first request.
type protected struct {
	*conn
	accepted []string
	key      []field // DataEncryptionKeyProto of the whole cluster; nil: blocks have tokens
	greeted  bool

	out, in sealer
	rest    []byte // of the last message

	aesOut io.Writer
	aesIn  io.Reader
}

// sealer signs the messages of one direction, and seals them where it has a cipher.
type sealer struct {
	key  []byte // nil: there is no protection
	rc4  *rc4.Cipher
	next uint32
}

const (
	macSize     = 10
	trailerSize = 6       // the type of the message, and its number
	mostMessage = 1 << 24 // bytes
)

func (s *sealer) mac(message []byte, number []byte) []byte {
	h := hmac.New(md5.New, s.key)
	h.Write(number)
	h.Write(message)
	return h.Sum(nil)[:macSize]
}

// wrap makes a message of bytes: they and their MAC, sealed together, then the message's type and number.
func (s *sealer) wrap(p []byte) []byte {
	number := binary.BigEndian.AppendUint32(nil, s.next)
	s.next++
	out := append(make([]byte, 4, 4+len(p)+macSize+trailerSize), p...)
	out = append(out, s.mac(p, number)...)
	if s.rc4 != nil {
		s.rc4.XORKeyStream(out[4:], out[4:])
	}
	out = append(append(out, 0, 1), number...)
	binary.BigEndian.PutUint32(out, uint32(len(out)-4)) //nolint:gosec // a packet
	return out
}

// open gives the bytes of a message; it is written over.
func (s *sealer) open(message []byte) ([]byte, error) {
	if len(message) < macSize+trailerSize {
		return nil, errors.New("a message is too short")
	}
	number := binary.BigEndian.AppendUint32(nil, s.next)
	s.next++
	body, trailer := message[:len(message)-trailerSize], message[len(message)-trailerSize:]
	if s.rc4 != nil {
		s.rc4.XORKeyStream(body, body)
	}
	text, mac := body[:len(body)-macSize], body[len(body)-macSize:]
	if !hmac.Equal(mac, s.mac(text, number)) || string(trailer) != "\x00\x01"+string(number) {
		return nil, errors.New("a message is not what the node has signed")
	}
	return text, nil
}

// Write protects the bytes, and greets before the first request.
func (p *protected) Write(b []byte) (int, error) {
	if !p.greeted {
		if err := p.greet(b); err != nil {
			if _, lost := errors.AsType[*nodeError](err); !lost {
				err = &nodeError{p.node, p.address, fmt.Errorf("protection: %w", err)}
			}
			return 0, err
		}
		p.greeted = true
	}
	switch {
	case p.aesOut != nil:
		return p.aesOut.Write(b)
	case p.out.key == nil:
		return p.conn.Write(b)
	}
	const most = 60 << 10 // of a message: both sides take 64 KiB
	for n := 0; n < len(b); {
		part := b[n:min(n+most, len(b))]
		if _, err := p.conn.Write(p.out.wrap(part)); err != nil {
			return n, err
		}
		n += len(part)
	}
	return len(b), nil
}

// Read gives what has come, message by message.
func (p *protected) Read(b []byte) (int, error) {
	switch {
	case p.aesIn != nil:
		return p.aesIn.Read(b)
	case p.in.key == nil:
		return p.conn.Read(b)
	}
	for len(p.rest) == 0 {
		var head [4]byte
		if _, err := io.ReadFull(p.conn, head[:]); err != nil {
			return 0, err
		}
		size := binary.BigEndian.Uint32(head[:])
		if size > mostMessage {
			return 0, &nodeError{p.node, p.address, fmt.Errorf("protection: got a message of %d bytes", size)}
		}
		message := make([]byte, size)
		if _, err := io.ReadFull(p.conn, message); err != nil {
			return 0, err
		}
		var err error
		if p.rest, err = p.in.open(message); err != nil {
			return 0, &nodeError{p.node, p.address, fmt.Errorf("protection: %w", err)}
		}
	}
	n := copy(b, p.rest)
	p.rest = p.rest[n:]
	return n, nil
}

// greet proves both sides to each other.
func (p *protected) greet(request []byte) error {
	d, err := p.credentials(request)
	if err != nil {
		return err
	}
	hello := slices.Concat(magic, pieceOf(encryptor("", false)))
	if _, err := p.conn.Write(hello); err != nil {
		return err
	}
	challenge, err := p.said()
	if err != nil {
		return err
	}
	answer, err := d.answer(data(challenge, 2), p.accepted)
	if err != nil {
		return err
	}
	if _, err := p.conn.Write(pieceOf(encryptor(answer, d.quality == "auth-conf"))); err != nil {
		return err
	}
	end, err := p.said()
	if err != nil {
		return err
	}
	proof, ok := strings.CutPrefix(string(data(end, 2)), "rspauth=")
	if !ok || subtle.ConstantTimeCompare([]byte(proof), []byte(d.proof(""))) != 1 {
		return errors.New("the DataNode could not prove who it is")
	}
	return p.protect(&d, fields(data(end, 4)))
}

// credentials are the cluster's key where there is one, else the token of the block.
func (p *protected) credentials(request []byte) (digest, error) {
	text := base64.StdEncoding.EncodeToString
	if p.key != nil {
		const id, pool, nonce, key = 1, 2, 3, 4
		signed := int32(number(p.key, id)) //nolint:gosec // signed there, not so on its way
		user := fmt.Sprintf("%d %s %s", signed, data(p.key, pool), text(data(p.key, nonce)))
		return digest{user: user, password: text(data(p.key, key))}, nil
	}
	identifier, password := blockToken(request)
	if identifier == nil {
		return digest{}, errors.New("the NameNode gave no token for the block")
	}
	return digest{user: text(identifier), password: text(password)}, nil
}

// encryptor is a DataTransferEncryptorMessageProto with status success.
func encryptor(payload string, aes bool) []byte {
	out := []byte{1 << 3, 0}
	if payload != "" {
		out = append(append(out, 2<<3|2), pieceOf([]byte(payload))...)
	}
	if aes {
		const ctr = 2                                 // AES/CTR/NoPadding
		out = append(out, 4<<3|2, 2, 1<<3, byte(ctr)) // cipherOption{suite}
	}
	return out
}

// said is the next message of the DataNode's greeting.
func (p *protected) said() ([]field, error) {
	size, err := binary.ReadUvarint(p.conn.in)
	if err != nil {
		return nil, &nodeError{p.node, p.address, err}
	}
	const most = 64 << 10 // in bytes, of a peer that has proved nothing yet
	if size > most {
		return nil, fmt.Errorf("got a greeting of %d bytes", size)
	}
	message := make([]byte, size)
	if _, err := io.ReadFull(p.conn, message); err != nil {
		return nil, err
	}
	all := fields(message)
	if status := number(all, 1); status != 0 {
		return nil, fmt.Errorf("the DataNode refuses: %s", firstLine(string(data(all, 3))))
	}
	return all, nil
}

// protect begins what was agreed upon.
func (p *protected) protect(d *digest, option []field) error {
	var err error
	if p.out, p.in, err = d.sealers(); err != nil || p.out.rc4 == nil || len(option) == 0 {
		return err
	}
	keyOut, err := p.in.open(slices.Clone(data(option, 2))) // in is the DataNode's, out ours
	if err != nil {
		return err
	}
	keyIn, err := p.in.open(slices.Clone(data(option, 4)))
	if err != nil {
		return err
	}
	streamOut, err := stream(keyOut, data(option, 3))
	if err != nil {
		return err
	}
	streamIn, err := stream(keyIn, data(option, 5))
	if err != nil {
		return err
	}
	p.aesOut, p.aesIn = cipher.StreamWriter{S: streamOut, W: p.conn}, cipher.StreamReader{S: streamIn, R: p.conn}
	return nil
}

// sealers sign and seal both directions, where that was agreed upon.
func (d *digest) sealers() (out, in sealer, err error) {
	const there, back = "client-to-server", "server-to-client"
	if d.quality == "auth" {
		return out, in, nil
	}
	out.key, in.key = d.derived(there, "sign"), d.derived(back, "sign")
	if d.quality == "auth-int" {
		return out, in, nil
	}
	var errOut, errIn error
	out.rc4, errOut = rc4.NewCipher(d.derived(there, "seal")) //nolint:gosec // see above
	in.rc4, errIn = rc4.NewCipher(d.derived(back, "seal"))    //nolint:gosec // see above
	return out, in, errors.Join(errOut, errIn)
}

func stream(key, iv []byte) (cipher.Stream, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	if len(iv) != block.BlockSize() {
		return nil, fmt.Errorf("got an IV of %d bytes", len(iv))
	}
	return cipher.NewCTR(block, iv), nil
}

// privileged tells a port that only root can listen at. A DataNode that does is believed without a greeting, as in
// Hadoop.
func privileged(address string) bool {
	_, port, err := net.SplitHostPort(address)
	n, bad := strconv.ParseUint(port, 10, 16)
	return err == nil && bad == nil && n < 1024
}

var magic = []byte{0xde, 0xad, 0xbe, 0xef}
