package hdfs

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"github.com/jcmturner/gokrb5/v8/crypto"
	"github.com/jcmturner/gokrb5/v8/gssapi"
	"github.com/jcmturner/gokrb5/v8/iana/keyusage"
	"github.com/jcmturner/gokrb5/v8/types"
)

// seal signs or seals requests to a NameNode (hadoop.rpc.protection). The library reads such answers, and sends in the
// clear; a NameNode accepts both. A whole request goes into a message of the greeting's form (Hadoop: SaslRpcClient,
// RpcSaslProto with state WRAP), as a token of GSS-API (RFC 4121, 4.2.4).
type seal struct {
	key   func() (types.EncryptionKey, error)
	least string // the quality that must be; empty: any will do

	offered string // the best quality that the NameNode has
	quality string // in force; empty: none yet, or none wanted
	held    *types.EncryptionKey
	next    uint64 // number of the next token; 0 is the greeting's own
	weak    error  // what the NameNode offers is not enough
}

// States of the greeting.
const (
	saslSuccess   = 0
	saslNegotiate = 1
	saslWrap      = 5
)

// heard follows the greeting. Like the library it takes the best protection that the NameNode offers.
func (s *seal) heard(message []field) {
	switch number(message, 2) {
	case saslNegotiate:
		for _, f := range message {
			if f.id != 4 || f.data == nil {
				continue
			}
			method := fields(f.data)
			if string(data(method, 1)) == "TOKEN" {
				s.offered = best(data(method, 5))
			}
		}
		s.weigh()
	case saslSuccess:
		s.weigh()
		if s.quality = s.offered; s.quality == "auth" {
			s.quality = ""
		}
	}
}

// weigh refuses less protection than required. A NameNode's offer is not signed: someone in between could remove the
// better ones.
func (s *seal) weigh() {
	if slices.Index(strengths, s.offered) < slices.Index(strengths, s.least) && s.least != strengths[0] {
		s.weak = fmt.Errorf(
			"%s: got %q from the NameNode, want %q at least", rpcProtection, cmp.Or(s.offered, strengths[0]), s.least,
		)
	}
}

// best is the best quality of a challenge.
func best(challenge []byte) string {
	offered := strings.Split(directives(challenge)["qop"], ",")
	for _, one := range []string{"auth-conf", "auth-int", "auth"} {
		if slices.Contains(offered, one) {
			return one
		}
	}
	return ""
}

// wrap makes the message that a request is sent in.
func (s *seal) wrap(request, client []byte) ([]byte, error) {
	if s.held == nil {
		key, err := s.key()
		if err != nil {
			return nil, err
		}
		s.held, s.next = &key, 1
	}
	token, err := s.token(request)
	if err != nil {
		return nil, err
	}
	s.next++
	return saslMessage(client, saslWrap, bytesField(3, token)), nil
}

// saslMessage is a message of the greeting's form, as a frame.
func saslMessage(client []byte, state byte, rest []byte) []byte {
	header := []byte{1 << 3, 2, 2 << 3, 0, 3 << 3, saslZigzag, 4<<3 | 2} // protobuf, final, the call, the client
	header = append(header, pieceOf(client)...)
	out := append(make([]byte, 4), pieceOf(header)...)
	out = append(out, pieceOf(append([]byte{2 << 3, state}, rest...))...)
	binary.BigEndian.PutUint32(out, uint32(len(out)-4)) //nolint:gosec // a request
	return out
}

// token is a request, signed or sealed.
func (s *seal) token(request []byte) ([]byte, error) {
	if s.quality != "auth-conf" {
		signed := gssapi.WrapToken{EC: 12, SndSeqNum: s.next, Payload: request}
		if err := signed.SetCheckSum(*s.held, keyusage.GSSAPI_INITIATOR_SEAL); err != nil {
			return nil, err
		}
		signed.EC = uint16(len(signed.CheckSum)) //nolint:gosec // a few bytes
		return signed.Marshal()
	}
	const sealedFlag = 2
	header := []byte{5, 4, sealedFlag, 0xff, 0, 0, 0, 0}
	header = binary.BigEndian.AppendUint64(header, s.next)
	sealed, err := crypto.GetEncryptedData(slices.Concat(request, header), *s.held, keyusage.GSSAPI_INITIATOR_SEAL, 0)
	if err != nil {
		return nil, err
	}
	return append(header, sealed.Cipher...), nil
}

// open is the answer in a sealed token; nil: it is none. The library checks that the peer is the expected one.
func (s *seal) open(token []byte) []byte {
	const head, length = 16, 4
	if len(token) <= head || token[0] != 5 || token[1] != 4 || token[2]&2 == 0 {
		return nil
	}
	text, err := crypto.DecryptMessage(token[head:], *s.held, keyusage.GSSAPI_ACCEPTOR_SEAL)
	if err != nil || len(text) < length+head {
		return nil
	}
	return text[length : len(text)-head]
}
