package stream

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/muster-agent/muster/shim/data/transfer"
	"github.com/muster-agent/muster/shim/plan"
)

// Reading says how files become a stream of records for one of several readers.
type Reading struct {
	Form      plan.RecordForm
	Want      int  // wanted number of splits; 0: 1
	Lines     int  // of a split of plan.RecordNLines; 0: 1
	Separator byte // of plan.RecordValues; 0: a tab
	Turn      Turn
	Again     transfer.Again
}

// Share is the input of one reader, in order. It depends on the files, their sizes and the Reading alone, so that all
// readers agree without communication.
type Share struct {
	Splits []Split // of plan.RecordNLines: of all readers, assigned while they are read
	All    int     // number of splits of all readers; -1 for plan.RecordNLines: not known yet

	reading Reading
	groups  int // of plan.RecordNLines, once counted
}

// Share assigns the splits of files. A compression that muster does not read is ErrCodec.
func (r Reading) Share(files []transfer.File) (*Share, error) {
	if r.Form == plan.RecordSequence { // the file names its compression
		all := cutSplits(files, r.Want, func(transfer.File) bool { return true })
		return &Share{Splits: assign(r.Turn, all), All: len(all), reading: r}, nil
	}
	for _, f := range files {
		if err := readable(f); err != nil {
			return nil, err
		}
	}
	all := cutSplits(files, r.Want, func(f transfer.File) bool {
		_, zipped := compressed(f.Path)
		return !zipped && (r.Form == plan.RecordLines || r.Form == plan.RecordValues)
	})
	if r.Form == plan.RecordNLines {
		return &Share{Splits: all, All: -1, reading: r, groups: -1}, nil
	}
	return &Share{Splits: assign(r.Turn, all), All: len(all), reading: r}, nil
}

// Count is the amount that was fed.
type Count struct {
	Bytes, Records int64
	Splits         int
}

// ReadError is a file that could not be read to its end.
type ReadError struct {
	Path string
	Err  error
}

func (e *ReadError) Error() string { return fmt.Sprintf("read %s: %v", e.Path, e.Err) }

// Unwrap is the cause.
func (e *ReadError) Unwrap() error { return e.Err }

// feedBuffer is how much is written at once, in bytes: as much as a pipe holds.
const feedBuffer = 64 << 10

// Feed writes the text of each record and a newline. A file that cannot be read is a *ReadError; any other error is of
// to or of ctx. Memory is bounded, however long a record.
func (s *Share) Feed(ctx context.Context, to io.Writer, count *Count) error {
	out := &sink{w: bufio.NewWriterSize(heedfulWriter{ctx, to}, feedBuffer), count: count}
	if s.reading.Form == plan.RecordNLines {
		return s.feedTurns(ctx, out)
	}
	for _, split := range s.Splits {
		if err := s.feedSplit(ctx, split, out); err != nil {
			return err
		}
	}
	return out.flush()
}

func (s *Share) feedSplit(ctx context.Context, split Split, out *sink) (err error) {
	from, done, err := s.open(ctx, split)
	if err != nil {
		return out.cause(ctx, split.File, err)
	}
	defer func() { err = errors.Join(err, done()) }()
	for err == nil {
		err = out.record(from)
	}
	if !errors.Is(err, io.EOF) || out.err != nil {
		return out.cause(ctx, split.File, err)
	}
	out.count.Splits++
	return out.flush() // the process need not wait for the next file to open
}

// open opens a split.
func (s *Share) open(ctx context.Context, split Split) (records, func() error, error) {
	if split.Length == 0 {
		return none{}, func() error { return nil }, nil
	}
	if s.reading.Form == plan.RecordSequence {
		return s.openSequence(ctx, split)
	}
	file, err := read(ctx, split.File, split.From, s.reading.Again)
	if err != nil {
		return nil, nil, err
	}
	plain, err := plainly(split.File.Path, file)
	if err != nil {
		return nil, nil, errors.Join(err, file.Close())
	}
	if s.reading.Form == plan.RecordWhole {
		return &content{from: plain}, file.Close, nil
	}
	l, err := newLines(plain, split.From, split.end())
	if err != nil {
		return nil, nil, errors.Join(err, file.Close())
	}
	if s.reading.Form == plan.RecordValues {
		return values{l, s.separator()}, file.Close, nil
	}
	return l, file.Close, nil
}

func (s *Share) separator() byte {
	if s.reading.Separator == 0 {
		return '\t'
	}
	return s.reading.Separator
}

// openSequence reads the header, and continues behind it or at the split's offset.
func (s *Share) openSequence(ctx context.Context, split Split) (records, func() error, error) {
	file, err := read(ctx, split.File, 0, s.reading.Again)
	if err != nil {
		return nil, nil, err
	}
	from := &counted{Reader: bufio.NewReaderSize(file, readBuffer)}
	header, err := readSequenceHeader(from)
	if err == nil && split.From > header.size {
		version := file.version
		if err = file.Close(); err == nil {
			file = &reading{ctx: ctx, file: split.File, again: s.reading.Again, at: split.From, version: version}
			from = &counted{Reader: bufio.NewReaderSize(file, readBuffer), at: split.From}
		}
	}
	if err != nil {
		return nil, nil, errors.Join(err, file.Close())
	}
	all, err := newSequence(header, from, max(split.From, header.size), split.end())
	if err != nil {
		return nil, nil, errors.Join(err, file.Close())
	}
	return all, file.Close, nil
}

// none is a split without records.
type none struct{}

func (none) next(io.Writer) error { return io.EOF }

// sink writes the records, and remembers its own errors.
type sink struct {
	w     *bufio.Writer
	count *Count
	err   error
}

func (s *sink) Write(b []byte) (int, error) {
	n, err := s.w.Write(b)
	s.count.Bytes += int64(n)
	if err != nil {
		s.err = err
	}
	return n, err
}

// record writes one record and its newline.
func (s *sink) record(from records) error {
	if err := from.next(s); err != nil {
		return err
	}
	if err := s.w.WriteByte('\n'); err != nil {
		s.err = err
		return err
	}
	s.count.Bytes++
	s.count.Records++
	return nil
}

func (s *sink) flush() error {
	if err := s.w.Flush(); err != nil {
		s.err = err
		return err
	}
	return nil
}

// cause tells the sink's own error from one of a file.
func (s *sink) cause(ctx context.Context, f transfer.File, err error) error {
	switch {
	case s.err != nil:
		return s.err
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return &ReadError{f.Shown(), err}
}

// heedfulWriter ends a long write with its context.
type heedfulWriter struct {
	ctx context.Context //nolint:containedctx // Write takes none; it ends with the feeding
	w   io.Writer
}

func (h heedfulWriter) Write(b []byte) (int, error) {
	if h.ctx.Err() != nil {
		return 0, context.Cause(h.ctx)
	}
	return h.w.Write(b)
}

// Source is what a process reads from its stdin.
type Source interface {
	Feed(ctx context.Context, to io.Writer, count *Count) error
}

// Repeat feeds a source so many times. A cache is filled the first time and read from then on; if it cannot be used,
// told gets the reason, and the source is read again.
func Repeat(
	ctx context.Context, s Source, to io.Writer, times int, cache *Cache, count *Count, told func(error),
) error {
	first := to
	if cache != nil {
		first = io.MultiWriter(to, spare{cache})
	}
	if err := s.Feed(ctx, first, count); err != nil || times <= 1 {
		return err
	}
	again := s.Feed
	if cache != nil {
		if err := cache.Done(); err != nil {
			told(err)
		} else {
			again = cache.Feed
		}
	}
	for range times - 1 {
		if err := again(ctx, to, count); err != nil {
			return err
		}
	}
	return nil
}
