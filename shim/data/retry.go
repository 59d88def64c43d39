package data

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/muster-agent/muster/shim/files"
	"github.com/muster-agent/muster/shim/store"
)

// retried is a file that survives failures of its store: a copy on this host is written again where the store loses the
// file.
type retried struct {
	ctx    context.Context //nolint:containedctx // Write takes none; it ends with the file
	g      Gathering
	name   string
	file   io.WriteCloser
	kept   *os.File // nil: there is no copy
	size   int64    // of it, bytes
	best   int64    // of it, at the store's last failure
	failed int      // tries without progress
}

// mostKept is the limit of the copy of one file, in bytes: other instances need room on this host as well.
const mostKept = 10 << 30

// keptName is the name of the copy, for a moment.
const keptName = ".muster-stdout.gz"

func (g Gathering) retried(ctx context.Context, name string) (*retried, error) {
	l := &retried{ctx: ctx, g: g, name: name}
	if g.Beside != nil {
		var err error
		if l.kept, err = files.Unnamed(g.Beside, keptName); err != nil {
			l.forget(err)
		}
	}
	err := l.create()
	for err != nil && l.retry(err) {
		err = l.create()
	}
	if err != nil {
		return nil, errors.Join(err, l.drop())
	}
	return l, nil
}

func (l *retried) create() error {
	file, err := l.g.Store.Create(l.ctx, l.name)
	if err == nil {
		l.file = file
	}
	return err
}

// giveUp closes a lost file, if one is open.
func (l *retried) giveUp() {
	if l.file != nil {
		_ = l.file.Close() // its error does not matter
		l.file = nil
	}
}

// forget drops the copy.
func (l *retried) forget(why error) {
	why = errors.Join(why, l.drop())
	if l.g.Bare != nil {
		l.g.Bare(why)
	}
}

func (l *retried) drop() error {
	if l.kept == nil {
		return nil
	}
	err := l.kept.Close()
	l.kept = nil
	return err
}

// keep adds to the copy while it has room.
func (l *retried) keep(b []byte) {
	if l.kept == nil {
		return
	}
	if most := cmp.Or(l.g.Most, mostKept); l.size+int64(len(b)) > most {
		l.forget(fmt.Errorf("%s has more than %d bytes", l.name, most))
		return
	}
	n, err := l.kept.Write(b)
	if l.size += int64(n); err != nil {
		l.forget(err)
	}
}

// Write may write everything again that was written before.
func (l *retried) Write(b []byte) (int, error) {
	l.keep(b)
	_, err := l.file.Write(b)
	if err == nil {
		return len(b), nil
	}
	if err := l.rewrite(err); err != nil {
		return 0, err
	}
	return len(b), nil
}

// begin resumes the file where the store can, else makes a new one.
func (l *retried) begin() (at int64, err error) {
	if at, err = store.Resume(l.ctx, l.file); err == nil {
		return at, nil
	}
	l.giveUp()
	if store.Transient(err) {
		return 0, err
	}
	if err := absent(l.g.Store.Remove(l.ctx, l.name)); err != nil {
		return 0, err
	}
	return 0, l.create()
}

// rewrite writes the part of the copy that the store has lost.
func (l *retried) rewrite(err error) error {
	if l.size > l.best { // as with copies: a try that got further does not count
		l.best, l.failed = l.size, 0
	}
	for l.kept != nil && l.retry(err) {
		var at int64
		if at, err = l.begin(); err == nil {
			_, err = io.CopyBuffer(struct{ io.Writer }{l.file}, io.NewSectionReader(l.kept, at, l.size-at),
				make([]byte, gatherBuffer))
		}
		if err == nil {
			return nil
		}
	}
	return err
}

func (l *retried) retry(err error) bool {
	l.failed++
	return l.ctx.Err() == nil && l.g.Again != nil && l.g.Again(l.ctx, l.name, l.failed, err)
}

// Close makes the file durable and drops the copy.
func (l *retried) Close() error {
	err := l.file.Close()
	for err != nil {
		if lost := l.rewrite(err); lost != nil {
			l.giveUp()
			err = lost
			break
		}
		err = l.file.Close()
	}
	return errors.Join(err, l.drop())
}

// abandon closes a file that will stay incomplete.
func (l *retried) abandon() error {
	l.giveUp()
	return l.drop()
}
