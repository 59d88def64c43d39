package stage

import (
	"context"
	"errors"
	"io"
	"os"
)

// lasting is a file that outlives its store's failures: what has been written is kept on this machine, and where the store
// loses it, it is written anew.
type lasting struct {
	ctx    context.Context //nolint:containedctx // a Write has none, and lives no longer
	g      Gathering
	name   string
	file   io.WriteCloser
	kept   *os.File // nil: nothing is
	size   int64    // of it, bytes
	failed int      // since a write went well
}

// keptName is the name of what is kept, for a moment.
const keptName = ".muster-stdout.gz"

func (g Gathering) lasting(ctx context.Context, name string) (*lasting, error) {
	l := &lasting{ctx: ctx, g: g, name: name}
	if g.Beside != nil {
		var err error
		if l.kept, err = unnamed(g.Beside, keptName); err != nil {
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

func (l *lasting) create() (err error) {
	l.file, err = l.g.Store.Create(l.ctx, l.name)
	return err
}

// forget keeps nothing from now on.
func (l *lasting) forget(why error) {
	if l.g.Bare != nil {
		l.g.Bare(errors.Join(why, l.drop()))
	}
	l.kept = nil
}

func (l *lasting) drop() error {
	if l.kept == nil {
		return nil
	}
	return l.kept.Close()
}

// Write may write all anew that was written before.
func (l *lasting) Write(b []byte) (int, error) {
	if l.kept != nil {
		n, err := l.kept.Write(b)
		if l.size += int64(n); err != nil {
			l.forget(err)
		}
	}
	_, err := l.file.Write(b)
	if err == nil {
		l.failed = 0
		return len(b), nil
	}
	if err := l.anew(err); err != nil {
		return 0, err
	}
	return len(b), nil
}

// anew writes what is kept to the file from its start.
func (l *lasting) anew(err error) error {
	for l.kept != nil && l.retry(err) {
		_ = l.file.Close() // it is lost
		if err = absent(l.g.Store.Remove(l.ctx, l.name)); err == nil {
			err = l.create()
		}
		if err == nil {
			_, err = io.CopyBuffer(onlyWriter{l.file}, io.NewSectionReader(l.kept, 0, l.size), make([]byte, copyBuffer))
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
			err = lost
			break
		}
		err = l.file.Close()
	}
	return errors.Join(err, l.drop())
}

// abandon gives up a file that will not be whole.
func (l *lasting) abandon() error {
	_ = l.file.Close() // whatever it says of it
	return l.drop()
}
