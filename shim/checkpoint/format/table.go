package format

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
)

// A table is what TensorFlow keeps its index in: LevelDB's sorted string table. Blocks of keys and values, each with a
// byte of its compression and a masked CRC-32C behind it; the last 48 bytes say where the block of blocks is.
const (
	footerBytes  = 48
	tableMagic   = 0xdb4775248b80fb57
	trailerBytes = 5
	crcMask      = 0xa282ead8
	mostRows     = 1 << 20
	mostKey      = 1 << 16 // bytes
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// errPacked is a block that is compressed: TensorFlow has never written one, and what it would say is not known here.
var errPacked = errors.New("compressed block")

// readTable reads all rows of an index.
func readTable(f content) (map[string][]byte, error) {
	index, err := tableIndex(f)
	if err != nil {
		return nil, err
	}
	rows, blocks, sum, keys := map[string][]byte{}, 0, int64(0), 0
	err = each(index, func(_ string, value []byte) error {
		at, n, _, ok := handle(value)
		blocks++
		if sum += n; !ok || sum > mostMetadata || blocks > mostRows {
			return errors.New("table: an entry of its index is torn")
		}
		b, err := block(f, at, n)
		if err != nil {
			return err
		}
		return each(b, func(key string, value []byte) error {
			rows[key] = value
			if keys += len(key); len(rows) > mostRows || keys > mostMetadata {
				return fmt.Errorf("table of more than %d rows, or %d bytes of keys", mostRows, mostMetadata)
			}
			return nil
		})
	})
	return rows, err
}

// wholeTable checks every block of a table whose rows are tensors: nothing of them is kept.
func wholeTable(f content) error {
	index, err := tableIndex(f)
	if err != nil {
		return err
	}
	sum := int64(0)
	return each(index, func(_ string, value []byte) error {
		at, n, _, ok := handle(value)
		if !ok || at > f.size || n > f.size-at-trailerBytes {
			return fmt.Errorf("table: %w", errCut)
		}
		if sum += n + trailerBytes; sum > f.size { // no two have a place in common
			return fmt.Errorf("table: %w", errStrange)
		}
		h := crc32.New(castagnoli)
		if _, err := io.CopyBuffer(h, io.NewSectionReader(f, at, n+1), make([]byte, 256<<10)); err != nil {
			return err
		}
		want, err := f.bytesAt(at+n+1, 4)
		if err == nil && masked(h.Sum32()) != binary.LittleEndian.Uint32(want) {
			err = errors.New("table: checksum of a block is wrong")
		}
		return err
	})
}

func masked(sum uint32) uint32 { return (sum>>15 | sum<<17) + crcMask }

// tableIndex is the block of blocks.
func tableIndex(f content) ([]byte, error) {
	footer, err := f.bytesAt(f.size-footerBytes, footerBytes)
	if err != nil || binary.LittleEndian.Uint64(footer[40:]) != tableMagic {
		return nil, errors.New("no end of a table in it")
	}
	_, _, rest, ok := handle(footer[:40])
	if !ok {
		return nil, errors.New("table without an index")
	}
	at, n, _, ok := handle(rest)
	if !ok {
		return nil, errors.New("table without an index")
	}
	return block(f, at, n)
}

// handle reads where a block is.
func handle(b []byte) (at, n int64, rest []byte, ok bool) {
	x, i := binary.Uvarint(b)
	if i <= 0 {
		return 0, 0, nil, false
	}
	y, j := binary.Uvarint(b[i:])
	if j <= 0 || x > 1<<62 || y > 1<<62 {
		return 0, 0, nil, false
	}
	return int64(x), int64(y), b[i+j:], true
}

func block(f content, at, n int64) ([]byte, error) {
	if n > mostMetadata-trailerBytes {
		return nil, fmt.Errorf("table: block of %d bytes", n)
	}
	b, err := f.bytesAt(at, n+trailerBytes)
	if err != nil {
		return nil, fmt.Errorf("table: %w", err)
	}
	sum := crc32.Checksum(b[:n+1], castagnoli)
	if masked(sum) != binary.LittleEndian.Uint32(b[n+1:]) {
		return nil, errors.New("table: checksum of a block is wrong")
	}
	if b[n] != 0 {
		return nil, fmt.Errorf("table: %w", errPacked)
	}
	return b[:n], nil
}

// each gives a block's rows: a key shares its first bytes with the one before.
func each(b []byte, row func(key string, value []byte) error) error {
	torn := errors.New("table: a block is torn")
	if len(b) < 4 {
		return torn
	}
	restarts := int64(binary.LittleEndian.Uint32(b[len(b)-4:]))
	end := int64(len(b)) - 4 - 4*restarts
	if end < 0 {
		return torn
	}
	b = b[:end]
	key, keys := []byte{}, 0
	for len(b) > 0 {
		var n [3]int
		for i := range n {
			x, k := binary.Uvarint(b)
			if k <= 0 || x > uint64(mostMetadata) {
				return torn
			}
			n[i], b = int(x), b[k:]
		}
		if n[0] > len(key) || n[1]+n[2] > len(b) || n[0]+n[1] > mostKey {
			return torn
		}
		if keys += n[0] + n[1]; keys > mostMetadata { // a few bytes each may stand for many
			return torn
		}
		key = append(key[:n[0]], b[:n[1]]...)
		if err := row(string(key), b[n[1]:n[1]+n[2]]); err != nil {
			return err
		}
		b = b[n[1]+n[2]:]
	}
	return nil
}

// protobuf gives the numbers of a message by field; what is no number is passed over.
func protobuf(b []byte) (map[uint64]uint64, error) {
	torn := errors.New("index: an entry is torn")
	fields := map[uint64]uint64{}
	for len(b) > 0 {
		tag, n := binary.Uvarint(b)
		if n <= 0 {
			return nil, torn
		}
		b = b[n:]
		skip := uint64(0)
		switch tag & 7 {
		case 0:
			x, n := binary.Uvarint(b)
			if n <= 0 {
				return nil, torn
			}
			fields[tag>>3], skip = x, uint64(n)
		case 1:
			skip = 8
		case 2:
			x, n := binary.Uvarint(b)
			if n <= 0 || x > uint64(len(b)) {
				return nil, torn
			}
			skip = uint64(n) + x
		case 5:
			skip = 4
		default:
			return nil, torn
		}
		if skip > uint64(len(b)) {
			return nil, torn
		}
		b = b[skip:]
	}
	return fields, nil
}
