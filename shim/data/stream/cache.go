package stream

import (
	"bufio"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/muster-agent/muster/shim/files"
)

// Cache keeps a compressed copy of a stream for its next reading. It has no name in its folder, and ends with its
// owner, however that ends.
type Cache struct {
	file  *os.File
	zip   *gzip.Writer
	limit int64
	size  sizer
	off   error // why it cannot be used
}

// errCacheFull is a cache that would exceed its limit.
var errCacheFull = errors.New("it would be larger than its limit")

// cacheName is its name for a moment; HBox calls its own inputformatCache.gz.
const cacheName = ".muster-inputs.gz"

// NewCache makes a cache in a folder, of at most so many bytes.
func NewCache(dir *os.Root, limit int64) (*Cache, error) {
	f, err := files.Unnamed(dir, cacheName)
	if err != nil {
		return nil, err
	}
	c := &Cache{file: f, limit: limit}
	c.size.w = f
	if c.zip, err = gzip.NewWriterLevel(&c.size, gzip.BestSpeed); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return c, nil
}

type sizer struct {
	w io.Writer
	n int64
}

func (s *sizer) Write(b []byte) (int, error) {
	n, err := s.w.Write(b)
	s.n += int64(n)
	return n, err
}

// Write keeps bytes. After an error it keeps no more, and Done has the same error.
func (c *Cache) Write(b []byte) (int, error) {
	if c.off != nil {
		return 0, c.off
	}
	_, err := c.zip.Write(b)
	if err == nil && c.size.n > c.limit {
		err = fmt.Errorf("%d bytes: %w", c.limit, errCacheFull)
	}
	if err != nil {
		c.drop(err)
		return 0, c.off
	}
	return len(b), nil
}

// spare writes to a cache that a stream can do without.
type spare struct{ *Cache }

func (s spare) Write(b []byte) (int, error) {
	_, _ = s.Cache.Write(b) // Done has it
	return len(b), nil
}

// drop frees the space at once.
func (c *Cache) drop(why error) { c.off = errors.Join(why, c.file.Truncate(0)) }

// Done ends the writing. The error is why the cache cannot be used.
func (c *Cache) Done() error {
	if c.off == nil {
		if err := c.zip.Close(); err != nil {
			c.drop(err)
		}
	}
	return c.off
}

// Feed writes the copy, after Done.
func (c *Cache) Feed(ctx context.Context, to io.Writer, count *Count) error {
	if _, err := c.file.Seek(0, io.SeekStart); err != nil {
		return &ReadError{c.file.Name(), err}
	}
	plain, err := gzip.NewReader(bufio.NewReaderSize(c.file, readBuffer))
	if err != nil {
		return &ReadError{c.file.Name(), err}
	}
	buffer := make([]byte, feedBuffer)
	for {
		n, err := plain.Read(buffer)
		written, failed := heedfulWriter{ctx, to}.Write(buffer[:n])
		count.Bytes += int64(written)
		switch {
		case failed != nil:
			return failed
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return &ReadError{c.file.Name(), err}
		}
	}
}

// Close frees the cache.
func (c *Cache) Close() error { return c.file.Close() }
