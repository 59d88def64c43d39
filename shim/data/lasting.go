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

// lasting is a file that outlives its store's failures: what has been written is kept on this machine, and where the
// store loses it, it is written anew.
type lasting struct {
	ctx    context.Context //nolint:containedctx // a Write has none, and lives no longer
	g      Gathering
	name   string
	file   io.WriteCloser
	kept   *os.File // nil: nothing is
	size   int64    // of it, bytes
	best   int64    // of it, when the store lost the file last
	failed int      // since it got further
}

// mostKept is how much of one file is kept, in bytes: other instances need room on this machine as well.
const mostKept = 10 << 30

// keptName is the name of what is kept, for a moment.
const keptName = ".muster-stdout.gz"

func (g Gathering) lasting(ctx context.Context, name string) (*lasting, error) {
	l := &lasting{ctx: ctx, g: g, name: name}
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

func (l *lasting) create() error {
	file, err := l.g.Store.Create(l.ctx, l.name)
	if err == nil {
		l.file = file
	}
	return err
}

// giveUp closes a file that is lost, if one is open.
func (l *lasting) giveUp() {
	if l.file != nil {
		_ = l.file.Close() // whatever it says of it
		l.file = nil
	}
}

// forget keeps nothing from now on.
func (l *lasting) forget(why error) {
	why = errors.Join(why, l.drop())
	if l.g.Bare != nil {
		l.g.Bare(why)
	}
}

func (l *lasting) drop() error {
	if l.kept == nil {
		return nil
	}
	err := l.kept.Close()
	l.kept = nil
	return err
}

// keep adds to what is kept, as long as it has room.
func (l *lasting) keep(b []byte) {
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

// Write may write all anew that was written before.
func (l *lasting) Write(b []byte) (int, error) {
	l.keep(b)
	_, err := l.file.Write(b)
	if err == nil {
		return len(b), nil
	}
	if err := l.anew(err); err != nil {
		return 0, err
	}
	return len(b), nil
}

// begin goes on with the file where the store can, else makes a new one.
func (l *lasting) begin() (at int64, err error) {
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

// anew writes what is kept, and the store has lost.
func (l *lasting) anew(err error) error {
	if l.size > l.best { // as with copies: a try that got further than those before does not count
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

func (l *lasting) retry(err error) bool {
	l.failed++
	return l.ctx.Err() == nil && l.g.Again != nil && l.g.Again(l.ctx, l.name, l.failed, err)
}

// Close makes the file durable, and what was kept is no more.
func (l *lasting) Close() error {
	err := l.file.Close()
	for err != nil {
		if lost := l.anew(err); lost != nil {
			l.giveUp()
			err = lost
			break
		}
		err = l.file.Close()
	}
	return errors.Join(err, l.drop())
}

// abandon gives up a file that will not be whole.
func (l *lasting) abandon() error {
	l.giveUp()
	return l.drop()
}
