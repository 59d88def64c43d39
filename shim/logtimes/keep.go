package logtimes

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/muster-agent/muster/shim/files"
)

const (
	look = 200 * time.Millisecond // the time between two looks at the log
	gap  = time.Second            // the least time between two marks
	// mostMarks is about 500 KB of marks. Of more than a file's end only every second one is kept.
	mostMarks = 16 << 10
)

// Keep writes the marks of a log until ctx ends, and one for what is there then. The log may not be there yet. When an
// agent that began at since is the first to keep marks, what was written before it has a time that is unknown.
func Keep(ctx context.Context, log string, since time.Time) error {
	k, err := begun(log, since)
	if err != nil {
		return err
	}
	tick := time.NewTicker(look)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return k.mark(time.Now())
		case now := <-tick.C:
			if now.Sub(k.told) < gap {
				continue
			}
			if err := k.mark(now); err != nil {
				return err
			}
		}
	}
}

// Begin is what Keep does first, for who writes to the log before it is kept.
func Begin(log string, since time.Time) error {
	_, err := begun(log, since)
	return err
}

func begun(log string, since time.Time) (*marker, error) {
	k := &marker{log: log, since: since}
	k.marks, k.kept = marksOf(log)
	return k, k.begin(time.Now())
}

// marker writes the marks of one log.
type marker struct {
	log   string
	since time.Time // when its agent began
	marks []mark
	kept  bool      // somebody has kept marks before
	told  time.Time // of the last mark
}

// begin marks what an earlier agent left without one.
func (k *marker) begin(now time.Time) error {
	f, err := files.AppendPlain(k.log + ending) // from now on the times are known, with a mark or without
	if err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	info, err := os.Lstat(k.log)
	if err != nil || info.Size() == 0 {
		return nil
	}
	if !k.kept && info.ModTime().Before(k.since) {
		return k.add(mark{inodeOf(info), info.Size(), 0})
	}
	if last := info.ModTime(); last.Before(now) { // what the run before wrote last is not of this one
		now = last
	}
	if n := len(k.marks); n > 0 && now.UnixMilli() < k.marks[n-1].at { // its process may have set the file's time
		now = time.UnixMilli(k.marks[n-1].at)
	}
	return k.mark(now)
}

// mark marks how long the log is now, if it has grown. Of a log that was rotated since its last mark, the end of the
// earlier file is marked too.
func (k *marker) mark(now time.Time) error {
	info, err := os.Lstat(k.log)
	if err != nil || !info.Mode().IsRegular() {
		return nil // it comes, or is none of the guard's
	}
	m := mark{inodeOf(info), info.Size(), now.UnixMilli()}
	var last mark
	if len(k.marks) > 0 {
		last = k.marks[len(k.marks)-1]
	}
	if last.inode == m.inode && last.size == m.size || m.size == 0 {
		return nil
	}
	k.told = now
	if earlier := k.rotated(last.inode); last.inode != m.inode && earlier > last.size {
		if err := k.add(mark{last.inode, earlier, m.at}); err != nil {
			return err
		}
	}
	return k.add(m)
}

// rotated is the size of the rotated file of that inode; 0: there is none.
func (k *marker) rotated(inode uint64) int64 {
	for i := 1; ; i++ {
		info, err := os.Lstat(k.log + "." + strconv.Itoa(i))
		if err != nil {
			return 0
		}
		if inodeOf(info) == inode {
			return info.Size()
		}
	}
}

func (k *marker) add(m mark) error {
	k.marks = append(k.marks, m)
	if len(k.marks) > mostMarks {
		return k.thin()
	}
	f, err := files.AppendPlain(k.log + ending)
	if err != nil {
		return err
	}
	return written(f, m.String())
}

// thin halves the marks: those of files that are gone, and of the others every second one but a file's last.
func (k *marker) thin() error {
	there := k.inodes()
	kept := k.marks[:0:0]
	for i, m := range k.marks {
		last := i+1 == len(k.marks) || k.marks[i+1].inode != m.inode
		if there[m.inode] && (last || i%2 == 0) {
			kept = append(kept, m)
		}
	}
	k.marks = kept
	var text strings.Builder
	for _, m := range kept {
		text.WriteString(m.String())
	}
	path := k.log + ending + ".new"
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := files.AppendPlain(path)
	if err != nil {
		return err
	}
	if err := written(f, text.String()); err != nil {
		return err
	}
	return os.Rename(path, k.log+ending)
}

// inodes are those of the log and of its rotated files.
func (k *marker) inodes() map[uint64]bool {
	there := map[uint64]bool{}
	for i := 0; ; i++ {
		path := k.log
		if i > 0 {
			path += "." + strconv.Itoa(i)
		}
		info, err := os.Lstat(path)
		if err != nil && i > 0 {
			return there
		}
		if err == nil {
			there[inodeOf(info)] = true
		}
	}
}

func written(f *os.File, text string) error {
	_, err := f.WriteString(text)
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", f.Name(), err)
	}
	return nil
}
