package data

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"

	"github.com/klauspost/compress/gzip"

	"github.com/muster-agent/muster/shim/data/transfer"
	"github.com/muster-agent/muster/shim/store"
)

// PartSize is the size of a part of TextMultiOutputFormat before compression, in bytes; the last line may exceed it.
const PartSize = 512 << 20

// gatherBuffer is how much is read at once, in bytes.
const gatherBuffer = 256 << 10

// Gathering writes the lines of a process into files of a store: part-r.gz, as HBox's TextOutputFormat does, or
// part-r-000.gz and so on, as TextMultiOutputFormat does.
type Gathering struct {
	Store store.Store
	Dir   string // it exists and has no parts yet
	Part  int64  // bytes; 0: one file
	// Beside is a folder of this host for a compressed copy of the current file, without a name: if the store loses the
	// file under its writer, it is written again from there. nil: there is no copy, and such a loss is an error.
	Beside *os.Root
	Most   int64          // bytes of such a copy; 0: mostKept
	Again  transfer.Again // of a write
	Bare   func(error)    // gets the reason when there is no copy from now on; may be nil
}

// Run writes until the end of from, and counts the bytes before compression. A last line without an end gets one. It
// reads no faster than it writes.
func (g Gathering) Run(ctx context.Context, from io.Reader) (left Left, err error) {
	name := path.Join(g.Dir, "part-r.gz")
	if g.Part > 0 {
		name = path.Join(g.Dir, "part-r-000.gz")
	}
	out, err := g.create(ctx, name)
	if err != nil {
		return left, err
	}
	left.Files = 1
	defer func() { err = errors.Join(err, out.close(err)) }()
	buffer, last := make([]byte, gatherBuffer), byte('\n')
	for {
		n, err := from.Read(buffer)
		for rest := buffer[:n]; len(rest) > 0; {
			if g.Part > 0 && out.size >= g.Part && last == '\n' {
				if out, err = g.roll(ctx, out, left.Files); err != nil {
					return left, err
				}
				left.Files++
			}
			piece := rest
			if g.Part > 0 && out.size+int64(len(rest)) >= g.Part {
				piece = out.upTo(rest, g.Part)
			}
			if err := out.write(ctx, piece); err != nil {
				return left, err
			}
			left.Bytes += int64(len(piece))
			rest, last = rest[len(piece):], piece[len(piece)-1]
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return left, err
		}
	}
	if last == '\n' {
		return left, nil
	}
	left.Bytes++
	return left, out.write(ctx, []byte("\n"))
}

// part is one file that is being written.
type part struct {
	name string
	file *retried
	zip  *gzip.Writer
	size int64 // before it is compressed, bytes
}

// roll ends a part and begins the next, with this number.
func (g Gathering) roll(ctx context.Context, full *part, number int) (*part, error) {
	if err := full.close(nil); err != nil {
		return nil, err
	}
	return g.create(ctx, path.Join(g.Dir, fmt.Sprintf("part-r-%03d.gz", number)))
}

func (g Gathering) create(ctx context.Context, name string) (*part, error) {
	file, err := g.retried(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("create %s: %w", name, transfer.Explain(err, g.Dir))
	}
	return &part{name: name, file: file, zip: gzip.NewWriter(file)}, nil
}

// upTo is how much of the bytes belongs to the part: up to its size, and to the end of that line.
func (p *part) upTo(b []byte, most int64) []byte {
	from := max(most-p.size-1, 0)
	if i := bytes.IndexByte(b[from:], '\n'); i >= 0 {
		return b[:from+int64(i)+1]
	}
	return b
}

func (p *part) write(ctx context.Context, b []byte) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	n, err := p.zip.Write(b)
	p.size += int64(n)
	return p.told(err)
}

// close makes the file durable, unless it is incomplete.
func (p *part) close(why error) error {
	if p == nil || p.file == nil {
		return nil
	}
	file := p.file
	p.file = nil
	if why != nil {
		return file.abandon()
	}
	err := p.zip.Close()
	if err != nil {
		return p.told(errors.Join(err, file.abandon()))
	}
	return p.told(file.Close())
}

func (p *part) told(err error) error {
	if err != nil {
		return fmt.Errorf("write %s: %w", p.name, transfer.Explain(err, path.Dir(p.name)))
	}
	return nil
}
