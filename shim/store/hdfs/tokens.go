package hdfs

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"syscall"
	"time"
)

// Delegation tokens are what a NameNode gave somebody who showed a ticket, for others to act as him until they end.
// Hadoop hands them over in a file that a variable names: YARN writes one into each container, `hdfs fetchdt` one for a
// person (Hadoop: Credentials, Token, AbstractDelegationTokenIdentifier).

// tokensVariable names the file.
const tokensVariable = "HADOOP_TOKEN_FILE_LOCATION"

// tokenKind is that of a NameNode's tokens; a file may have others, as YARN's.
const tokenKind = "HDFS_DELEGATION_TOKEN"

// token is one of a file. Its service is the cluster that it is for: ADDRESS:PORT of a NameNode, or
// ha-hdfs:NAMESERVICE.
type token struct {
	identifier, password []byte
	kind, service        string
}

// holder is whom a token makes of who shows it, and its last end, however often it is renewed.
func (t token) holder() (owner string, end time.Time, err error) {
	defer shielded(&err)
	r := &tokenReader{t.identifier}
	if version := r.take(1)[0]; version != 0 {
		return "", end, fmt.Errorf("got a token of version %d, want 0", version)
	}
	owner = string(r.piece())
	r.piece()  // the renewer
	r.piece()  // who acts for the owner
	r.number() // when it was given
	return owner, time.UnixMilli(r.number()), nil
}

// parseTokens reads a token file, of version 0 (Hadoop's own encoding) or 1 (protobuf).
func parseTokens(text []byte) (all []token, err error) {
	const head = "HDTS"
	if len(text) <= len(head) || string(text[:len(head)]) != head {
		return nil, errors.New("it is no token file: it does not begin with " + head)
	}
	version, text := text[len(head)], text[len(head)+1:]
	switch version {
	case 0:
		defer shielded(&err)
		r := &tokenReader{text}
		for range r.count() {
			r.piece() // its alias
			one := token{identifier: r.piece(), password: r.piece()}
			one.kind, one.service = string(r.piece()), string(r.piece())
			all = append(all, one)
		}
		return all, nil
	case 1:
		message, _ := delimited(text)
		if message == nil {
			return nil, errors.New("it is torn")
		}
		for _, f := range fields(message) {
			if one := fields(data(fields(f.data), 2)); f.id == 1 && one != nil {
				all = append(all, token{data(one, 1), data(one, 2), string(data(one, 3)), string(data(one, 4))})
			}
		}
		return all, nil
	}
	return nil, fmt.Errorf("got version %d of a token file, want 0 or 1", version)
}

// TokenFile is the text of the agent's own token file, for a process of its own.
func TokenFile() ([]byte, error) {
	text, _, err := readTokens(os.Getenv(tokensVariable))
	return text, err
}

// readTokens reads a token file. One of somebody else is not the agent's to use, or to hand on: a user may have named
// it to an agent that is root.
func readTokens(path string) (text []byte, all []token, err error) {
	const hint = tokensVariable + " names it; hdfs fetchdt, or YARN in a container, writes one"
	info, err := os.Stat(path)
	if err != nil {
		return nil, nil, refused(hint, "token file: %v", err)
	}
	of, ok := info.Sys().(*syscall.Stat_t)
	if !info.Mode().IsRegular() || !ok || int(of.Uid) != os.Geteuid() && of.Uid != 0 {
		return nil, nil, refused(hint, "token file %s: want a regular file that belongs to the agent's user, uid %d, "+
			"or to root", path, os.Geteuid())
	}
	if info.Mode().Perm()&0o002 != 0 {
		return nil, nil, refused(hint, "token file %s: got the mode %#o, want one in which others may not write: "+
			"chmod o-w", path, info.Mode().Perm())
	}
	if text, err = readSmall(path); err != nil {
		return nil, nil, refused(hint, "token file: %v", err)
	}
	if all, err = parseTokens(text); err != nil {
		return nil, nil, refused(hint, "token file %s: %v", path, err)
	}
	return text, all, nil
}

// tokenReader reads Hadoop's own encoding. It panics at the end of the text.
type tokenReader struct{ rest []byte }

func (r *tokenReader) take(n int) []byte {
	b := r.rest[:n:n]
	r.rest = r.rest[n:]
	return b
}

// number is one of variable length (Hadoop: WritableUtils.readVLong): small ones are their byte; else the first byte
// says how many follow, and the sign.
func (r *tokenReader) number() int64 {
	first := int8(r.take(1)[0]) //nolint:gosec // signed there
	if first >= -112 {
		return int64(first)
	}
	size, flip := -112-int(first), int64(0)
	if first < -120 {
		size, flip = -120-int(first), -1
	}
	var whole [8]byte
	copy(whole[8-size:], r.take(size))
	return int64(binary.BigEndian.Uint64(whole[:])) ^ flip //nolint:gosec // as it was written
}

// count is a number of things that take a byte at least.
func (r *tokenReader) count() int {
	n := r.number()
	if n < 0 || n > int64(len(r.rest)) {
		panic(errors.New("a count beyond the end of the file"))
	}
	return int(n)
}

func (r *tokenReader) piece() []byte { return r.take(r.count()) }

// fits tells whether a token is for a cluster. Hadoop writes a NameNode's address by number unless it is told otherwise
// (hadoop.security.token.service.use_ip).
func (t token) fits(cluster string, addresses []string, lookup func(host string) ([]string, error)) bool {
	if t.kind != tokenKind {
		return false
	}
	if t.service == "ha-hdfs:"+cluster || slices.Contains(addresses, t.service) {
		return true
	}
	number, port, err := net.SplitHostPort(t.service)
	if err != nil || net.ParseIP(number) == nil {
		return false
	}
	return slices.ContainsFunc(addresses, func(address string) bool {
		host, other, err := net.SplitHostPort(address)
		if err != nil || other != port {
			return false
		}
		numbers, err := lookup(host)
		return err == nil && slices.Contains(numbers, number)
	})
}
