package hdfs

import (
	"encoding/binary"
	"slices"
)

// field is one field of a protobuf message: number for varints, data for delimited values.
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

// delimited splits off the first delimited value; nil: there is no complete one.
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

func pieceOf(b []byte) []byte { return append(binary.AppendUvarint(nil, uint64(len(b))), b...) }

func bytesField(id uint64, content []byte) []byte {
	return append(binary.AppendUvarint(nil, id<<3|2), pieceOf(content)...)
}

func numberField(id, n uint64) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(nil, id<<3), n)
}
