package status

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"strconv"
	"time"

	"github.com/muster-agent/muster/shim/files"
)

// poll is the time between two looks at a followed file.
const poll = 200 * time.Millisecond

// Follow copies a growing file from offset on. With follow it goes on, over rotations (the file is renamed to PATH.1,
// PATH.1 to PATH.2 and so on) and a file that is not there yet, until ctx is done, and looks once more then; without it
// it ends at the end of the file. A file that was cut short is read from its start.
func Follow(ctx context.Context, path string, offset int64, follow bool, to io.Writer) error {
	l := follower{path: path, to: to}
	return l.run(ctx, offset, follow)
}

// mostBehind is how far Watch lags behind the end of its file at most, in bytes.
const mostBehind = 1 << 20

// Watch is Follow for a reader that needs the newest only: it skips what a process writes faster than it is read. So
// the last look takes no longer than any other, however long the file is.
func Watch(ctx context.Context, path string, offset int64, to io.Writer) error {
	l := follower{path: path, to: to, newest: true}
	return l.run(ctx, offset, true)
}

func (l *follower) run(ctx context.Context, offset int64, follow bool) error {
	defer l.close()
	err := l.open(offset)
	if err == nil {
		err = l.copy()
	}
	if !follow {
		return err
	}
	ticker := time.NewTicker(poll)
	defer ticker.Stop()
	for {
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		select {
		case <-ctx.Done():
			if err := l.advance(offset); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			return nil
		case <-ticker.C:
		}
		err = l.advance(offset)
	}
}

// follower is one Follow.
type follower struct {
	path   string
	to     io.Writer
	newest bool     // read no more than the last mostBehind bytes
	file   *os.File // nil: not there yet
}

func (l *follower) open(offset int64) error {
	f, err := files.OpenPlain(l.path)
	if err != nil {
		return err
	}
	l.close()
	l.file = f
	info, err := f.Stat()
	if err != nil {
		return err
	}
	_, err = f.Seek(min(offset, info.Size()), io.SeekStart)
	return err
}

func (l *follower) close() {
	if l.file != nil {
		_ = l.file.Close() // only read
		l.file = nil
	}
}

// copy copies what was appended.
func (l *follower) copy() error {
	if l.file == nil {
		return nil
	}
	at, err := l.file.Seek(0, io.SeekCurrent)
	if err != nil {
		return err
	}
	info, err := l.file.Stat()
	if err != nil {
		return err
	}
	from := at
	if info.Size() < at {
		from = 0
	}
	var source io.Reader = l.file
	if l.newest {
		from = max(from, info.Size()-mostBehind)
		source = io.LimitReader(l.file, info.Size()-from)
	}
	if from != at {
		if _, err := l.file.Seek(from, io.SeekStart); err != nil {
			return err
		}
	}
	_, err = io.Copy(l.to, source)
	return err
}

// advance copies what was appended, of the next files as well when there was a rotation. The first file is read from
// offset on.
func (l *follower) advance(offset int64) error {
	if l.file == nil {
		if err := l.open(offset); err != nil {
			return err
		}
		return l.copy()
	}
	moved := l.moved() // before the copy: what comes after the rename goes to another file
	if err := l.copy(); err != nil || moved == 0 {
		return err
	}
	for i := moved - 1; i >= 0; i-- {
		next := follower{path: l.numbered(i), to: l.to, newest: l.newest}
		if err := next.open(0); err != nil {
			return err
		}
		l.close()
		l.file = next.file
		if err := l.copy(); err != nil {
			return err
		}
	}
	return nil
}

// moved is how often the file that is being read was rotated since: the number behind its name. A file that is none of
// these any more counts as the one after the last.
func (l *follower) moved() int {
	mine, err := l.file.Stat()
	if err != nil {
		return 0
	}
	if _, err := os.Lstat(l.path); err != nil { // between the rename and the new file
		return 0
	}
	for i := 0; ; i++ {
		info, err := os.Lstat(l.numbered(i))
		if err != nil || os.SameFile(mine, info) {
			return i
		}
	}
}

func (l *follower) numbered(i int) string {
	if i == 0 {
		return l.path
	}
	return l.path + "." + strconv.Itoa(i)
}
