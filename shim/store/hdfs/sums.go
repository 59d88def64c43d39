package hdfs

import (
	"crypto/md5" //nolint:gosec // it is the sum that HDFS keeps of its checksums
	"encoding/binary"
	"hash"
	"hash/crc32"
	"io"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// chunkSize is how many bytes a checksum is of.
const chunkSize = 512

// packetSize is how much is sent at a time, in bytes: a DataNode accepts up to 16 MiB, and a small packet costs as much
// work.
const packetSize = 256 << 10

// checksums appends the CRC32C of each chunk; the last may be shorter than the others.
func checksums(to, p []byte) []byte {
	for len(p) > 0 {
		n := min(len(p), chunkSize)
		to = binary.BigEndian.AppendUint32(to, crc32.Checksum(p[:n], castagnoli))
		p = p[n:]
	}
	return to
}

// sums are what HDFS keeps of a file: of each chunk a CRC32C, of a block's the MD5, of the blocks' the MD5 again,
// filled up with zeros (Hadoop: FileChecksumHelper).
type sums struct {
	size   int64 // of complete blocks, in bytes
	crcs   hash.Hash
	blocks []byte
}

func newSums() *sums { return &sums{crcs: md5.New()} } //nolint:gosec // see above

// add takes the checksums of the next chunks of a block.
func (s *sums) add(checksums []byte) { s.crcs.Write(checksums) }

// endBlock ends a block of so many bytes.
func (s *sums) endBlock(size int64) {
	s.blocks = s.crcs.Sum(s.blocks)
	s.crcs.Reset()
	s.size += size
}

// dropBlock forgets what has come of a block.
func (s *sums) dropBlock() { s.crcs.Reset() }

// file is the sum of all blocks.
func (s *sums) file() []byte {
	have, want := len(s.blocks), 2*md5.Size
	for want < have {
		want *= 2
	}
	h := md5.New() //nolint:gosec // see above
	h.Write(s.blocks)
	h.Write(make([]byte, want-have))
	return h.Sum(nil)
}

// sumOf is the sum of a reader's bytes, in blocks of a size.
func sumOf(r io.Reader, block int64) ([]byte, error) {
	s, buffer, crcs := newSums(), make([]byte, packetSize), []byte(nil)
	for {
		in := int64(0)
		for in < block {
			n, err := io.ReadFull(r, buffer[:min(packetSize, block-in)])
			crcs = checksums(crcs[:0], buffer[:n])
			s.add(crcs)
			in += int64(n)
			if err == io.EOF || err == io.ErrUnexpectedEOF {
				if in > 0 {
					s.endBlock(in)
				}
				return s.file(), nil
			}
			if err != nil {
				return nil, err
			}
		}
		s.endBlock(in)
	}
}
