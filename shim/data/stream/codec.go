package stream

import (
	"bufio"
	"compress/bzip2"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/klauspost/compress/zstd"

	"github.com/muster-agent/muster/shim/data/transfer"
)

// ErrCodec is a compression that muster does not read.
var ErrCodec = errors.New("it is compressed in a way that is not read here")

// codec decompresses its input.
type codec func(io.Reader) (io.Reader, error)

// codecs are the compressions that Hadoop recognises by the end of a file's name. nil: muster does not read it.
var codecs = map[string]codec{
	".gz": gunzip, ".deflate": inflate, ".bz2": bunzip2, ".zst": unzstd,
	".snappy": nil, ".lz4": nil, ".lzo": nil, ".lzo_deflate": nil,
}

// codecClasses are the compressions that a SequenceFile names.
var codecClasses = map[string]codec{
	"org.apache.hadoop.io.compress.DefaultCodec": inflate,
	"org.apache.hadoop.io.compress.DeflateCodec": inflate,
	"org.apache.hadoop.io.compress.GzipCodec":    gunzip,
	"org.apache.hadoop.io.compress.BZip2Codec":   bunzip2,
}

// compressed tells by a file's name whether it is compressed, and how.
func compressed(name string) (codec, bool) {
	c, ok := codecs[strings.ToLower(path.Ext(name))]
	return c, ok
}

// readable refuses a file with a compression that muster does not read.
func readable(f transfer.File) error {
	if c, ok := compressed(f.Path); ok && c == nil {
		return fmt.Errorf("%s: got %s, want .gz, .bz2, .zst, .deflate or none; write it again so: %w", f.Shown(),
			path.Ext(f.Path), ErrCodec)
	}
	return nil
}

func gunzip(r io.Reader) (io.Reader, error)  { return gzip.NewReader(r) }
func inflate(r io.Reader) (io.Reader, error) { return zlib.NewReader(r) }
func bunzip2(r io.Reader) (io.Reader, error) { return bzip2.NewReader(r), nil }

// mostWindow is how far back a zstd stream may refer, in bytes: the default limit of the zstd program. Only streams
// written with --long or --ultra need more than 8 MiB.
const mostWindow = 128 << 20

func unzstd(r io.Reader) (io.Reader, error) {
	return zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxWindow(mostWindow))
}

// plainly is a file's decompressed content. An empty file is empty, whatever its name.
func plainly(name string, content io.Reader) (*bufio.Reader, error) {
	raw := bufio.NewReaderSize(content, readBuffer)
	c, ok := compressed(name)
	if !ok {
		return raw, nil
	}
	if _, err := raw.Peek(1); errors.Is(err, io.EOF) {
		return raw, nil
	}
	if c == nil {
		return nil, ErrCodec
	}
	plain, err := c(raw)
	if err != nil {
		return nil, err
	}
	return bufio.NewReaderSize(plain, readBuffer), nil
}

// readBuffer is how much is read ahead, in bytes.
const readBuffer = 64 << 10
