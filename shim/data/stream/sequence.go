package stream

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// textClass is the only class of values that is text itself.
const textClass = "org.apache.hadoop.io.Text"

// The SequenceFile of Hadoop (org.apache.hadoop.io.SequenceFile, version 6). All numbers are big-endian, a vint is that
// of WritableUtils, a text is a vint and so many bytes:
//
//	header   "SEQ" 6, text key class, text value class, bool compressed, bool in blocks, [text codec], int n, n times
//	         two texts, 16 bytes that mark this file
//	mark     int -1, the 16 bytes; from time to time between records, before each block
//	record   int length of key and value, int length of the key, key, value; the value alone is compressed
//	block    vint records, then four times vint length and so many bytes, each compressed: lengths of the keys, keys,
//	         lengths of the values, values
//
// Reading may begin at the end of the header and at each mark.
const (
	sequenceVersion = 6
	markSize        = 16
	mostName        = 32 << 10 // bytes of a class's name, or of a note in the header
	mostNotes       = 1 << 16
)

var (
	sequenceMagic = []byte("SEQ")
	escape        = []byte{0xFF, 0xFF, 0xFF, 0xFF}
)

// sequenceHeader is the header of the file.
type sequenceHeader struct {
	compressed, blocks bool
	codec              codec
	mark               [markSize]byte
	size               int64 // of the header, bytes
}

// sequenceError is a malformed file.
type sequenceError struct {
	at   int64
	what string
}

func (e *sequenceError) Error() string {
	return fmt.Sprintf("SequenceFile at byte %d: %s", e.at, e.what)
}

// counted counts the bytes that are read of a file.
type counted struct {
	*bufio.Reader
	at int64
}

func (c *counted) Read(b []byte) (int, error) {
	n, err := c.Reader.Read(b)
	c.at += int64(n)
	return n, err
}

func (c *counted) ReadByte() (byte, error) {
	b, err := c.Reader.ReadByte()
	if err == nil {
		c.at++
	}
	return b, err
}

// bad is an error about the bytes that were read last.
func (c *counted) bad(format string, args ...any) error {
	return &sequenceError{c.at, fmt.Sprintf(format, args...)}
}

// readSequenceHeader reads from the first byte of a file on.
func readSequenceHeader(r *counted) (sequenceHeader, error) {
	var h sequenceHeader
	magic := make([]byte, len(sequenceMagic)+1)
	if _, err := io.ReadFull(r, magic); err != nil && !short(err) {
		return h, err
	}
	if !bytes.Equal(magic[:len(sequenceMagic)], sequenceMagic) {
		return h, r.bad("got %q, want SEQ: it is no SequenceFile; set muster.inputs.format (--inputformat) to what "+
			"it is", magic)
	}
	if v := magic[len(sequenceMagic)]; v != sequenceVersion {
		return h, r.bad("got version %d, want %d", v, sequenceVersion)
	}
	if _, err := r.name(); err != nil { // of the key, which is skipped
		return h, err
	}
	value, err := r.name()
	if err != nil {
		return h, err
	}
	if value != textClass {
		return h, r.bad("got values of class %s, want %s", value, textClass)
	}
	for _, is := range []*bool{&h.compressed, &h.blocks} {
		b, err := r.ReadByte()
		if err != nil {
			return h, torn(err)
		}
		*is = b != 0
	}
	if err := h.readCodec(r); err != nil {
		return h, err
	}
	if err := r.notes(); err != nil {
		return h, err
	}
	_, err = io.ReadFull(r, h.mark[:])
	h.size = r.at
	return h, torn(err)
}

func (h *sequenceHeader) readCodec(r *counted) error {
	if !h.compressed {
		if h.blocks {
			return r.bad("got blocks that are not compressed")
		}
		return nil
	}
	class, err := r.name()
	if err != nil {
		return err
	}
	h.codec = codecClasses[class]
	if h.codec == nil {
		return fmt.Errorf("%w: %w", r.bad("got codec %s, want DefaultCodec, GzipCodec or BZip2Codec; write it again "+
			"with one of them", class), ErrCodec)
	}
	return nil
}

// notes skips the metadata of the file.
func (c *counted) notes() error {
	n, err := c.int32()
	if err != nil {
		return err
	}
	if n < 0 || n > mostNotes {
		return c.bad("got %d notes, want up to %d", n, mostNotes)
	}
	for range 2 * n {
		if _, err := c.name(); err != nil {
			return err
		}
	}
	return nil
}

func (c *counted) name() (string, error) {
	n, err := vint(c)
	if err != nil {
		return "", err
	}
	if n < 0 || n > mostName {
		return "", c.bad("got a name of %d bytes, want up to %d", n, mostName)
	}
	text := make([]byte, n)
	_, err = io.ReadFull(c, text)
	return string(text), torn(err)
}

func (c *counted) int32() (int32, error) {
	var b [4]byte
	_, err := io.ReadFull(c, b[:])
	return int32(binary.BigEndian.Uint32(b[:])), torn(err) //nolint:gosec // it has a sign
}

// vint reads a number as WritableUtils.writeVLong writes it: one byte from -112 on is itself; below, it says the sign
// and how many bytes follow.
func vint(r io.ByteReader) (int64, error) {
	first, err := r.ReadByte()
	if err != nil {
		return 0, torn(err)
	}
	const itself, positive, negative = -112, -113, -121
	kind := int(int8(first)) //nolint:gosec // it has a sign
	if kind >= itself {
		return int64(kind), nil
	}
	size := positive - kind + 1
	if kind <= negative {
		size = negative - kind + 1
	}
	var value int64
	for range size {
		b, err := r.ReadByte()
		if err != nil {
			return 0, torn(err)
		}
		value = value<<8 | int64(b)
	}
	if kind <= negative {
		value = ^value
	}
	return value, nil
}

func short(err error) bool { return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) }

// torn turns the end of the file in the middle of a part into an error.
func torn(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// sequence are the values of the records whose mark, or the header's end, lies in the split.
type sequence struct {
	sequenceHeader
	from  *counted
	end   int64 // -1: the end of the file
	over  bool
	left  int64   // records left in the current block
	block *opened // its values
	value *opened // of one record, reused
}

// newSequence begins at the first mark of a split. from is read from at on: 0, or an offset behind the header.
func newSequence(h sequenceHeader, from *counted, at, end int64) (*sequence, error) {
	s := &sequence{sequenceHeader: h, from: from, end: end}
	if at > h.size {
		if err := s.seek(); err != nil {
			return nil, err
		}
	}
	s.over = s.over || s.behind(from.at)
	return s, nil
}

func (s *sequence) behind(at int64) bool { return s.end >= 0 && at >= s.end }

// seek skips to the next mark.
func (s *sequence) seek() error {
	want := append(bytes.Clone(escape), s.mark[:]...)
	for {
		ahead, err := s.from.Peek(len(want))
		if short(err) || s.behind(s.from.at) {
			s.over = true
			return nil
		}
		if err != nil {
			return err
		}
		if bytes.Equal(ahead, want) {
			return nil
		}
		ahead, _ = s.from.Peek(s.from.Buffered()) // it is there
		skip := bytes.Index(ahead, want)
		if skip < 0 {
			skip = len(ahead) - len(want) + 1 // it may begin there
		}
		n, err := s.from.Discard(skip)
		s.from.at += int64(n)
		if err != nil {
			return err
		}
	}
}

func (s *sequence) next(to io.Writer) error {
	if s.blocks {
		return s.nextOfBlock(to)
	}
	return s.nextRecord(to)
}

// marked skips a mark; io.EOF: the rest belongs to another split, or the file has ended.
func (s *sequence) marked() (bool, error) {
	if s.over {
		return false, io.EOF
	}
	ahead, err := s.from.Peek(len(escape))
	switch {
	case errors.Is(err, io.EOF) && len(ahead) == 0:
		s.over = true
		return false, io.EOF
	case err != nil:
		return false, torn(err)
	case !bytes.Equal(ahead, escape):
		return false, nil
	case s.behind(s.from.at):
		s.over = true
		return false, io.EOF
	}
	var mark [len(sequenceHeader{}.mark) + 4]byte
	if _, err := io.ReadFull(s.from, mark[:]); err != nil {
		return false, torn(err)
	}
	if !bytes.Equal(mark[len(escape):], s.mark[:]) {
		return false, s.from.bad("got another mark than this file's; it is damaged")
	}
	return true, nil
}

func (s *sequence) nextRecord(to io.Writer) error {
	for {
		met, err := s.marked()
		if err != nil {
			return err
		}
		if !met {
			break
		}
	}
	length, err := s.from.int32()
	if err != nil {
		return err
	}
	key, err := s.from.int32()
	if err != nil {
		return err
	}
	if length < 0 || key < 0 || key > length {
		return s.from.bad("got a record of %d bytes with a key of %d; it is damaged", length, key)
	}
	if err := s.from.pass(int64(key)); err != nil {
		return err
	}
	return s.writeValue(to, int64(length-key))
}

// writeValue writes the text of a value of so many bytes.
func (s *sequence) writeValue(to io.Writer, size int64) error {
	value := io.LimitedReader{R: s.from, N: size}
	var err error
	if s.value, err = s.value.again(&value, s.codec); err != nil {
		return torn(err)
	}
	if err := text(s.value, to); err != nil {
		return err
	}
	if _, err := s.value.ReadByte(); !errors.Is(err, io.EOF) {
		return errors.Join(err, s.from.bad("got a value that goes on behind its text; it is damaged"))
	}
	return s.from.pass(value.N)
}

func (s *sequence) nextOfBlock(to io.Writer) error {
	for s.left == 0 {
		if err := s.openBlock(); err != nil {
			return err
		}
	}
	if err := text(s.block, to); err != nil {
		return err
	}
	s.left--
	if s.left > 0 {
		return nil
	}
	return s.closeBlock()
}

// openBlock skips to the values of the next block.
func (s *sequence) openBlock() error {
	met, err := s.marked()
	if err != nil {
		return err
	}
	if !met {
		return s.from.bad("got no mark before a block; it is damaged")
	}
	if s.left, err = vint(s.from); err != nil {
		return err
	}
	if s.left < 0 {
		return s.from.bad("got a block of %d records; it is damaged", s.left)
	}
	var size int64
	for part := range 4 {
		if size, err = vint(s.from); err != nil {
			return err
		}
		if size < 0 {
			return s.from.bad("got a part of %d bytes; it is damaged", size)
		}
		if part == 3 {
			break
		}
		if err := s.from.pass(size); err != nil {
			return err
		}
	}
	if s.left == 0 {
		return s.from.pass(size)
	}
	s.block, err = s.block.again(&io.LimitedReader{R: s.from, N: size}, s.codec)
	return torn(err)
}

// closeBlock checks that no value is left over.
func (s *sequence) closeBlock() error {
	if _, err := s.block.ReadByte(); !errors.Is(err, io.EOF) {
		return errors.Join(err, s.from.bad("got more values in a block than records; it is damaged"))
	}
	return s.from.pass(s.block.part.N)
}

// pass skips so many bytes.
func (c *counted) pass(n int64) error {
	for n > 0 {
		done, err := c.Discard(int(min(n, 1<<30)))
		c.at += int64(done)
		n -= int64(done)
		if err != nil {
			return torn(err)
		}
	}
	return nil
}

// text writes the bytes of a Text.
func text(from *opened, to io.Writer) error {
	n, err := vint(from)
	if err != nil {
		return err
	}
	if n < 0 {
		return fmt.Errorf("got a text of %d bytes; the file is damaged", n)
	}
	_, err = io.CopyN(to, from, n)
	return torn(err)
}

// opened is a decompressed part of the file.
type opened struct {
	*bufio.Reader
	part *io.LimitedReader
	raw  *bufio.Reader
	zip  io.Reader
}

// again opens a part and reuses the decompressor of the one before, which may be nil.
func (o *opened) again(part *io.LimitedReader, c codec) (*opened, error) {
	if o == nil {
		o = &opened{raw: bufio.NewReaderSize(nil, partBuffer), Reader: bufio.NewReaderSize(nil, partBuffer)}
	}
	o.part = part
	if c == nil {
		o.Reader.Reset(part)
		return o, nil
	}
	o.raw.Reset(part)
	var err error
	switch again := o.zip.(type) {
	case zlib.Resetter:
		err = again.Reset(o.raw, nil)
	case *gzip.Reader:
		err = again.Reset(o.raw)
	default:
		o.zip, err = c(o.raw)
	}
	o.Reader.Reset(o.zip)
	return o, err
}

// partBuffer is how much of a part is read ahead, in bytes.
const partBuffer = 16 << 10
