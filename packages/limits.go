package packages

import (
	"bytes"
	"fmt"
	"io"
)

// What a package may hold at most, unless Limits say otherwise.
const (
	maxFiles = 100_000
	maxBytes = 8 << 30
	maxRatio = 200
	maxDepth = 64
	maxFree  = 256 << 20
)

// Bounds that have no reason to be wider: room for the folder's own path is left below Linux's PATH_MAX of 4096, and an
// element is NAME_MAX (limits.h).
const (
	maxName    = 2048 // bytes
	maxElement = 255  // bytes
	// perFile is what a tar may spend on one entry's headers and padding, in bytes.
	perFile = 8 << 10
)

// Limits bound what an archive may unpack to. A field that is 0 means its default.
type Limits struct {
	Files int   // files, folders and links, those that a name implies too; default 100,000
	Bytes int64 // of all files; default 8 GiB
	Ratio int64 // bytes that may come from one byte of the archive, once more than Free have; default 200
	Free  int64 // bytes that may come from however few, for tables and zeros compress a thousandfold; default 256 MiB
	Depth int   // folders above a file; default 64
}

func (l Limits) filled() Limits {
	if l.Files <= 0 {
		l.Files = maxFiles
	}
	if l.Bytes <= 0 {
		l.Bytes = maxBytes
	}
	if l.Ratio <= 0 {
		l.Ratio = maxRatio
	}
	if l.Free <= 0 {
		l.Free = maxFree
	}
	if l.Depth <= 0 {
		l.Depth = maxDepth
	}
	return l
}

// budget is what is spent of the limits. What is read counts, whatever the archive states.
type budget struct {
	Limits
	packed   func() int64 // bytes of the archive that have been read
	streamed int64        // bytes of the tar
	written  int64        // bytes of files: more than the tar has when it has holes
}

func (b *budget) stream(n int) error {
	b.streamed += int64(n)
	if b.streamed > b.Bytes+int64(b.Files)*perFile {
		return b.tooMany()
	}
	return b.ratio(b.streamed)
}

func (b *budget) write(n int64) error {
	b.written += n
	if b.written > b.Bytes {
		return b.tooMany()
	}
	return b.ratio(b.written)
}

func (b *budget) tooMany() error {
	return refuse(tooManyBytes, fmt.Sprintf("got more than %d bytes unpacked", b.Bytes),
		"less: leave data out of the package")
}

func (b *budget) ratio(n int64) error {
	if n <= b.Free || n/b.Ratio <= b.packed() {
		return nil
	}
	return refuse(bomb, fmt.Sprintf("got %d bytes out of %d, which is more than %d for each", n, b.packed(), b.Ratio),
		"an archive that is no bomb: pack files of zeros apart")
}

// boundedReader reads a tar within the budget.
type boundedReader struct {
	r     io.Reader
	b     *budget
	zeros int64 // that it has ended with so far
}

func (r *boundedReader) Read(p []byte) (int, error) {
	n, err := r.r.Read(p)
	if over := r.b.stream(n); over != nil {
		return 0, over
	}
	last := bytes.TrimRight(p[:n], "\x00")
	if len(last) > 0 {
		r.zeros = 0
	}
	r.zeros += int64(n - len(last))
	return n, torn(err)
}
