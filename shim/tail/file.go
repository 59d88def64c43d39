package tail

import (
	"bytes"
	"io"
	"iter"
	"slices"
	"strconv"

	"github.com/muster-agent/muster/shim/files"
)

// part is what to print of one file: everything from an offset on.
type part struct {
	path string
	from int64
}

// Parts are the rotated files of a log, the oldest first, and the log itself, each with the offset from which on it is
// to be printed, so that these are the last n lines altogether; n < 0: all of them. The log itself is always among
// them.
func Parts(path string, n int) iter.Seq2[string, int64] {
	var found []part
	left := n
	for i := 0; ; i++ {
		name := path
		if i > 0 {
			name += "." + strconv.Itoa(i)
		}
		from, lines, err := lastFrom(name, left)
		if err != nil && i > 0 {
			break
		}
		found = append(found, part{name, from})
		if n < 0 {
			continue
		}
		if left -= lines; left <= 0 {
			break
		}
	}
	return func(yield func(string, int64) bool) {
		for _, p := range slices.Backward(found) {
			if !yield(p.path, p.from) {
				return
			}
		}
	}
}

// lastFrom is where the last n lines of a file begin, and how many of them there are. An unfinished
// line counts; n < 0 means all of the file.
func lastFrom(path string, n int) (from int64, lines int, err error) {
	f, err := files.OpenPlain(path)
	if err != nil {
		return 0, 0, err
	}
	defer f.Close()
	if n < 0 {
		return 0, 0, nil
	}
	at, err := f.Seek(0, io.SeekEnd)
	if err != nil || n == 0 || at == 0 {
		return at, 0, err
	}
	block := make([]byte, 64<<10)
	at-- // the newline at the very end ends the last line, it begins none
	for at > 0 {
		size := min(int64(len(block)), at)
		if _, err := f.ReadAt(block[:size], at-size); err != nil {
			return 0, 0, err
		}
		for b := block[:size]; ; {
			i := bytes.LastIndexByte(b, '\n')
			if i < 0 {
				break
			}
			if lines++; lines == n {
				return at - size + int64(i) + 1, lines, nil
			}
			b = b[:i]
		}
		at -= size
	}
	return 0, lines + 1, nil
}
