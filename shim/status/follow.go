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
	newest bool        // read no more than the last mostBehind bytes
	file   *os.File    // nil: not there yet
	at     int         // its number at the last look
	live   fs.FileInfo // of the live file then
}

func (l *follower) open(offset int64) error {
	f, err := files.OpenPlain(l.path)
	if err != nil {
		return err
	}
	l.close()
	l.file, l.at = f, 0
	l.live, _ = os.Lstat(l.path) // none: the next look finds it
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
	for {
		next, lost := l.next() // before the copy: what comes after the rename goes to another file
		err := l.copy()
		if err == nil && lost && !l.newest {
			err = l.tellLost()
		}
		if next == nil {
			return err
		}
		l.close()
		l.file, l.at = next, max(0, l.at-1)
		if err != nil {
			return err
		}
	}
}

// next opens the file that follows the one that is being read; nil: that one is the live file. It is held from here on,
// however long the copy takes. lost tells that files between the two are gone.
func (l *follower) next() (f *os.File, lost bool) {
	for range mostShifts {
		moved, there, lost := l.moved()
		if moved == 0 {
			return nil, false
		}
		f, err := files.OpenPlain(l.numbered(moved - 1))
		if err != nil { // it has just got another name
			continue
		}
		if now, still, _ := l.moved(); now == moved && still == there {
			return f, lost
		}
		_ = f.Close() // only read; it has another name, too
	}
	return nil, false // it is looked for at the next look
}

// mostShifts is how many rotations one look bears.
const mostShifts = 100

// tellLost writes a line in place of what was not read.
func (l *follower) tellLost() error {
	text := "muster: lines may be missing here: the log was rotated away before it was read\n"
	last := []byte{'\n'}
	if info, err := l.file.Stat(); err == nil && info.Size() > 0 {
		_, _ = l.file.ReadAt(last, info.Size()-1) // else it looks like the end of a line
	}
	if last[0] != '\n' {
		text = "\n" + text
	}
	_, err := io.WriteString(l.to, text)
	return err
}

// moved is how often the file that is being read was rotated: the number behind its name. One that is there no more
// counts as the one after the last; lost tells that others after it are gone, too.
func (l *follower) moved() (n int, there, lost bool) {
	mine, err := l.file.Stat()
	if err != nil {
		return 0, true, false
	}
	live, err := os.Lstat(l.path)
	if err != nil { // between the rename and the new file
		return 0, true, false
	}
	since := -1                // rotations since the last look
	for i := 0; i < n+2; i++ { // in the middle of a rotation one is missing
		info, err := os.Lstat(l.numbered(i))
		if err != nil {
			continue
		}
		if os.SameFile(mine, info) {
			l.at, l.live = i, live
			return i, true, false
		}
		if l.live != nil && os.SameFile(l.live, info) {
			since = i
		}
		n = i + 1
	}
	return n, false, n > 1 && (since < 0 || l.at+since > n)
}

func (l *follower) numbered(i int) string {
	if i == 0 {
		return l.path
	}
	return l.path + "." + strconv.Itoa(i)
}
