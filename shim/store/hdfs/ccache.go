package hdfs

import (
	"encoding/binary"
	"errors"
	"slices"

	"github.com/jcmturner/gokrb5/v8/credentials"
)

// parseCache reads a ticket cache of kind FILE, versions 1 to 4.
func parseCache(text []byte) (c *credentials.CCache, err error) {
	defer shielded(&err)
	// The library allocates as much as a count says, which in a torn file is gigabytes, and panics if a file ends
	// early.
	walkCache(text)
	c = new(credentials.CCache)
	return c, c.Unmarshal(slices.Clip(text)) // it reads as far as there is room
}

// cacheWalk checks a ticket cache without storing anything: each length and count is compared with the rest of the
// file. It panics if the file ends too early. The format is MIT's "Credential cache file format".
type cacheWalk struct {
	rest    []byte
	order   binary.ByteOrder
	version byte
}

func walkCache(text []byte) {
	w := &cacheWalk{rest: text[2:], order: binary.BigEndian, version: text[1]}
	if w.version < 3 {
		w.order = binary.NativeEndian
	}
	if w.version == 4 {
		w.header()
	}
	for w.principal(); len(w.rest) > 0; {
		w.credential()
	}
}

// header has fields of 12 bytes: there is one kind of them. The library reads a header of another length in another
// way.
func (w *cacheWalk) header() {
	n := int(w.order.Uint16(w.take(2)))
	if n%12 != 0 {
		panic(errors.New("a header with half a field"))
	}
	w.skip(n)
}

func (w *cacheWalk) credential() {
	w.principal() // the client
	w.principal() // the server
	w.skip(2)     // the kind of the key
	if w.version == 3 {
		w.skip(2) // which version 3 repeats
	}
	w.data()
	w.skip(4*4 + 1 + 4) // four times, is_skey, the flags
	for range 2 {       // addresses and authorization data, each with a kind
		for range w.count(2 + 4) {
			w.skip(2)
			w.data()
		}
	}
	w.data() // the ticket
	w.data() // the second ticket
}

func (w *cacheWalk) principal() {
	if w.version > 1 {
		w.skip(4) // the kind of the name
	}
	names := w.count(4)
	if w.version > 1 {
		names++ // the realm, which only version 1 counts
	}
	for range names {
		w.data()
	}
}

// count is a number of things that take at least `each` bytes.
func (w *cacheWalk) count(each int) int {
	n := int(w.order.Uint32(w.take(4)))
	if n > len(w.rest)/each {
		panic(errors.New("a count beyond the end of the file"))
	}
	return n
}

func (w *cacheWalk) data() { w.skip(int(w.order.Uint32(w.take(4)))) }

func (w *cacheWalk) skip(n int) { w.take(n) }

func (w *cacheWalk) take(n int) []byte {
	b := w.rest[:n:n]
	w.rest = w.rest[n:]
	return b
}
