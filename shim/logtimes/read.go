package logtimes

import (
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/muster-agent/muster/shim/files"
)

const ending = ".times"

// mark says that a file had so many bytes then. A time of 0 is unknown: they were there before anybody looked.
type mark struct {
	inode uint64
	size  int64
	at    int64 // milliseconds since 1970
}

func (m mark) String() string {
	return fmt.Sprintln(m.inode, m.size, m.at)
}

func parse(line string) (m mark, ok bool) {
	words := strings.Split(line, " ")
	if len(words) != 3 {
		return m, false
	}
	inode, err := strconv.ParseUint(words[0], 10, 64)
	if err != nil {
		return m, false
	}
	size, err := strconv.ParseInt(words[1], 10, 64)
	if err != nil {
		return m, false
	}
	at, err := strconv.ParseInt(words[2], 10, 64)
	return mark{inode, size, at}, err == nil && size >= 0 && at >= 0
}

// marksOf are the marks of a log and of the files that it was rotated to; kept: somebody keeps them.
func marksOf(log string) (all []mark, kept bool) {
	text, err := files.ReadPlain(log + ending)
	if err != nil {
		return nil, false
	}
	for line := range strings.SplitSeq(string(text), "\n") {
		if m, ok := parse(line); ok {
			all = append(all, m)
		}
	}
	return all, true
}

// Read reads the marks of one of a log's files.
func Read(log string, info fs.FileInfo) File {
	marks, kept := marksOf(log)
	f := fileOf(marks, info)
	f.kept = kept
	return f
}

func fileOf(marks []mark, info fs.FileInfo) File {
	f := File{last: info.ModTime()}
	inode := inodeOf(info)
	for _, m := range marks {
		if m.inode != inode {
			continue
		}
		if n := len(f.marks); n > 0 && (m.size < f.marks[n-1].size || m.at < f.marks[n-1].at) {
			f.marks = nil // the number is another file's now, or it was cut short
		}
		f.marks = append(f.marks, m)
	}
	return f
}

func inodeOf(info fs.FileInfo) uint64 {
	if sys, ok := info.Sys().(*syscall.Stat_t); ok {
		return sys.Ino
	}
	return 0
}

// File tells when the bytes of one file were written.
type File struct {
	marks []mark
	kept  bool
	last  time.Time // it was not written to later
}

// At is when the byte at an offset had been written, to the second; zero: unknown.
func (f File) At(offset int64) time.Time {
	i, _ := slices.BinarySearchFunc(f.marks, offset+1, func(m mark, size int64) int {
		if m.size < size {
			return -1
		}
		return 1
	})
	switch {
	case !f.kept:
		return time.Time{}
	case i == len(f.marks):
		return f.last.UTC().Truncate(time.Millisecond)
	case f.marks[i].at == 0:
		return time.Time{}
	}
	return time.UnixMilli(f.marks[i].at).UTC()
}

// Since is how much of the file was written before a time; of a file without marks: nothing.
func (f File) Since(t time.Time) (offset int64) {
	for _, m := range f.marks {
		if m.at >= t.UnixMilli() {
			break
		}
		offset = m.size
	}
	return offset
}
