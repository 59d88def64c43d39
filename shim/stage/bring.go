package stage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strconv"
	"sync"
	"syscall"

	"github.com/muster-agent/muster/packages/fetch"
)

// Parallel is how many files are copied at a time, as HBox's thread numbers have it.
const Parallel = 10

// copyBuffer is what is read at once, in bytes.
const copyBuffer = 256 << 10

// SizeError is a file of which less or more came than it has.
type SizeError struct{ Want, Got int64 }

func (e *SizeError) Error() string { return fmt.Sprintf("got %d bytes, want %d", e.Got, e.Want) }

// executable is what a store can say of a file beside its bytes.
type executable interface {
	Executable(ctx context.Context, path string) bool
}

// Transfer says how files are moved; the zero value is good.
type Transfer struct {
	Parallel int // at a time; 0: Parallel
}

func (t Transfer) parallel() int { return cmp.Or(t.Parallel, Parallel) }

// Bring copies files into a folder. Each is private and may be changed; it has its name only when it is whole. The first
// that fails calls the others off; what is half there goes.
func (t Transfer) Bring(ctx context.Context, to *os.Root, copies []Copy) error {
	return each(ctx, len(copies), t.parallel(), func(ctx context.Context, i int) error {
		c := copies[i]
		if err := bring(ctx, to, c, half+strconv.Itoa(i)); err != nil {
			return fmt.Errorf("copy %s to %s: %w", c.From.Path, path.Join(to.Name(), c.To), explain(err, to.Name()))
		}
		return nil
	})
}

// bring copies one file; half is its name until it is whole, in the same folder.
func bring(ctx context.Context, to *os.Root, c Copy, half string) (err error) {
	content, err := c.From.Store.Open(ctx, c.From.Path, fetch.Position{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, content.Close()) }()
	if dir := path.Dir(c.To); dir != "." {
		if err := to.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	mode := fs.FileMode(0o644)
	if store, ok := c.From.Store.(executable); ok && store.Executable(ctx, c.From.Path) {
		mode = 0o755
	}
	tmp := path.Join(path.Dir(c.To), half)
	f, err := to.OpenFile(tmp, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	n, err := io.CopyBuffer(onlyWriter{f}, content, make([]byte, copyBuffer))
	if err = errors.Join(err, f.Close()); err == nil && content.Info.Size >= 0 && n != content.Info.Size {
		err = &SizeError{content.Info.Size, n}
	}
	if err == nil {
		err = to.Rename(tmp, c.To)
	}
	if err != nil {
		return errors.Join(err, to.Remove(tmp))
	}
	return nil
}

// half begins the name of a file that is not whole; a number follows, for its own name may be as long as names can be.
const half = ".muster-half-"

// onlyWriter hides that a file could take over the copying: the read must see its context end.
type onlyWriter struct{ io.Writer }

// each does something for 0…n-1, parallel at a time, and gives the first error; the others are called off.
func each(ctx context.Context, n, parallel int, do func(ctx context.Context, i int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	next := make(chan int)
	var all sync.WaitGroup
	for range min(max(parallel, 1), n) {
		all.Go(func() {
			for i := range next {
				if err := do(ctx, i); err != nil {
					cancel(err) // the first is kept
				}
			}
		})
	}
	for i := 0; i < n && ctx.Err() == nil; i++ {
		select {
		case next <- i:
		case <-ctx.Done():
		}
	}
	close(next)
	all.Wait()
	return context.Cause(ctx)
}

// explain says what would do about a full disk, where a message is about a folder of ours.
func explain(err error, dir string) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		if _, told := errors.AsType[*fetch.Error](err); !told {
			return fmt.Errorf("%w; free some on the file system of %s", err, dir)
		}
	}
	return err
}
