package transfer

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path"
	"syscall"

	"github.com/muster-agent/muster/shim/store"
)

// SizeError is a file that has fewer or more bytes than expected.
type SizeError struct{ Want, Got int64 }

func (e *SizeError) Error() string { return fmt.Sprintf("got %d bytes, want %d", e.Got, e.Want) }

// executable is what a store can tell about a file beside its bytes.
type executable interface {
	Executable(ctx context.Context, path string) bool
}

// Folder is where files are copied to: an *os.Root, or a folder with another user's rights.
type Folder interface {
	Name() string
	OpenFile(name string, flag int, perm fs.FileMode) (*os.File, error)
	MkdirAll(name string, perm fs.FileMode) error
	Rename(from, to string) error
	Remove(name string) error
}

// Bring copies files into a folder. Each copy is private and may be changed; it gets its name when it is complete. A
// broken copy resumes where it was, while the file is the same. The first error that a retry does not help cancels the
// others. Incomplete files are removed, unless a ledger records them and they may be completed later.
func (t Transfer) Bring(ctx context.Context, to Folder, copies []Copy) error {
	return t.run(ctx, len(copies), func(ctx context.Context, p *progress, i int) error {
		c := copies[i]
		if err := bring(ctx, p, to, c); err != nil {
			// its name in the store may have a query
			return fmt.Errorf("copy %s to %s: %w", c.From.Shown(), to.Name(), Explain(err, to.Name()))
		}
		return nil
	})
}

// bring copies one file.
func bring(ctx context.Context, p *progress, to Folder, c Copy) (err error) {
	if p.how.Ledger.has(ctx, to, c) {
		return nil
	}
	if ctx.Err() != nil { // the file was not checked to its end, and stays
		return context.Cause(ctx)
	}
	if dir := path.Dir(c.To); dir != "." {
		if err := to.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	tmp := halfOf(c.To)
	g, err := begin(ctx, p, to, c, tmp)
	if err != nil {
		return err
	}
	err = p.persist(ctx, c.From.Shown(), g.more)
	if err == nil {
		err = g.check(ctx)
	}
	if err = errors.Join(err, g.file.Close()); err == nil {
		err = to.Rename(tmp, c.To)
	}
	if err == nil {
		g.note(true)
		return nil
	}
	g.note(false)
	if _, kept := g.ledger.of(c); kept && (ctx.Err() != nil || store.Transient(err)) {
		return err
	}
	return errors.Join(err, to.Remove(tmp))
}

// begin opens the file to write to, with the bytes that the ledger records.
func begin(ctx context.Context, p *progress, to Folder, c Copy, tmp string) (*growing, error) {
	g := &growing{to: c.To, from: c.From, ledger: p.how.Ledger}
	if e, ok := g.ledger.of(c); ok && !e.Whole {
		if f, err := own(to, tmp, os.O_RDWR); err == nil {
			if e.check(ctx, f) == nil && f.Truncate(e.Bytes) == nil {
				g.file, g.have, g.noted, g.sum, g.validator, g.pieces = f, e.Bytes, e.Bytes, e.Sum, e.Version, 1
				return g, nil
			}
			if err := f.Close(); err != nil {
				return nil, err
			}
			if ctx.Err() != nil { // it may be good: it stays for the next agent
				return nil, context.Cause(ctx)
			}
		}
	}
	mode := fs.FileMode(0o644)
	if store, ok := c.From.Store.(executable); ok && store.Executable(ctx, c.From.Path) {
		mode = 0o755
	}
	var err error
	g.file, err = create(to, tmp, mode)
	return g, err
}

// create makes a new file; a file of the same name is of a killed predecessor.
func create(to Folder, name string, mode fs.FileMode) (*os.File, error) {
	const how = os.O_CREATE | os.O_EXCL | os.O_RDWR
	f, err := to.OpenFile(name, how, mode)
	if errors.Is(err, fs.ErrExist) {
		if err := to.Remove(name); err != nil {
			return nil, err
		}
		f, err = to.OpenFile(name, how, mode)
	}
	return f, err
}

// growing is a file that arrives, in as many pieces as it takes.
type growing struct {
	file      *os.File
	to        string
	from      File
	ledger    *Ledger // nil: none
	noted     int64   // bytes, in it
	have      int64   // bytes
	sum       uint32
	validator string
	pieces    int
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// more brings the missing bytes. far is how many bytes have arrived.
func (g *growing) more(ctx context.Context, a *attempt) (far int64, err error) {
	at := store.Position{Offset: g.have, Validator: g.validator}
	if g.validator == "" { // two versions in one file would go unnoticed
		at = store.Position{}
	}
	content, err := g.from.Store.Open(ctx, g.from.Path, at)
	if err != nil {
		return g.have, err
	}
	defer func() { err = errors.Join(err, content.Close()) }()
	if content.Offset != g.have || content.Offset == 0 {
		if err := g.restart(content.Offset); err != nil {
			return g.have, err
		}
	}
	var source io.Reader = content
	if g.from.Fixed {
		if err := g.from.isThat(content.Info); err != nil {
			return g.have, err
		}
		source = io.LimitReader(content, g.from.Size-g.have+1) // one more tells that it has grown
	}
	g.validator = content.Info.Validator
	g.pieces++
	if _, err := io.CopyBuffer(onlyWriter{counting{g, a}}, source, make([]byte, copyBuffer)); err != nil {
		return g.have, err
	}
	if want := content.Info.Size; want >= 0 && g.have < want {
		return g.have, fmt.Errorf("%w: %w", store.ErrUnreachable, &SizeError{want, g.have})
	} else if want >= 0 && g.have > want {
		return g.have, &SizeError{want, g.have}
	}
	return g.have, nil
}

// errChanged is a file that is not the one that was listed under its path.
var errChanged = errors.New("changed since it was listed; leave the folder alone while it is read")

// isThat compares the opened file with the listed one.
func (f File) isThat(opened store.Info) error {
	if opened.Size != f.Size {
		return fmt.Errorf("%w: %w", errChanged, &SizeError{f.Size, opened.Size})
	}
	if f.Version != "" && opened.Validator != f.Version {
		return errChanged
	}
	return nil
}

// restart drops the bytes that have arrived: they are of another version, or the store cannot begin at an offset.
func (g *growing) restart(at int64) error {
	if at != 0 {
		return fmt.Errorf("the store begins at byte %d, want %d", at, g.have)
	}
	g.have, g.noted, g.sum, g.pieces = 0, 0, 0, 0
	if err := g.file.Truncate(0); err != nil {
		return err
	}
	_, err := g.file.Seek(0, io.SeekStart)
	return err
}

// check reads a file again that arrived in pieces, and compares it with its sum.
func (g *growing) check(ctx context.Context) error {
	if g.pieces < 2 {
		return nil
	}
	if _, err := g.file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	h := crc32.New(castagnoli)
	n, err := io.Copy(h, store.Reader(ctx, g.file))
	if err == nil && n != g.have {
		err = &SizeError{g.have, n}
	}
	if err == nil && h.Sum32() != g.sum {
		err = fmt.Errorf("%w: CRC32C on disk is %08x, want %08x", store.ErrCorrupt, h.Sum32(), g.sum)
	}
	return err
}

// counting writes the bytes that arrive, and counts them.
type counting struct {
	g *growing
	a *attempt
}

func (c counting) Write(b []byte) (int, error) {
	n, err := c.g.file.Write(b)
	c.g.have += int64(n)
	c.g.sum = crc32.Update(c.g.sum, castagnoli, b[:n])
	c.a.moved(n)
	if c.g.ledger.due(c.g.have - c.g.noted) {
		c.g.note(false)
	}
	return n, err
}

// note records the progress in the ledger. A file that another version has replaced is recorded as that version.
func (g *growing) note(whole bool) {
	if g.validator != "" {
		g.ledger.note(arrival{
			To: g.to, From: sourceOf(g.from), Version: g.validator, Bytes: g.have, Sum: g.sum,
			Whole: whole,
		})
	}
	g.noted = g.have
}

// half is how the name of an incomplete file begins.
const half = ".muster-half-"

// halfOf is the name of a file until it is complete, in the same folder. It has a fixed length, since the file's own
// name may be as long as names can be.
func halfOf(name string) string {
	h := sha256.Sum256([]byte(name))
	const enough = 12
	return path.Join(path.Dir(name), half+hex.EncodeToString(h[:enough]))
}

// onlyWriter hides that a file could take over the copying: the read must notice the end of its context.
type onlyWriter struct{ io.Writer }

// Explain adds the remedy to the error of a full disk, if the error is about one of our folders.
func Explain(err error, dir string) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		if _, told := errors.AsType[*store.Error](err); !told {
			return fmt.Errorf("%w; free some on the file system of %s", err, dir)
		}
	}
	return err
}
