package stream

import (
	"path"

	"github.com/muster-agent/muster/shim/data/transfer"
)

// Split is a piece of a file. It has the records that begin in it, wherever they end.
type Split struct {
	File   transfer.File
	From   int64 // its first byte
	Length int64 // bytes; -1: to the end of the file
}

// end is the offset behind the split; -1: the end of the file.
func (s Split) end() int64 {
	if s.Length < 0 {
		return -1
	}
	return s.From + s.Length
}

// Hadoop's numbers for splits.
const (
	blockSize = 128 << 20 // dfs.blocksize; that of a file itself is not asked for, so that stores make no difference
	slop      = 1.1       // the last split of a file may be so much larger
)

// cutSplits cuts files as Hadoop's FileInputFormat does for a wanted number of splits: a split has at most that share
// of all bytes, and at most a block. HBox wants one, so that a file of up to 1.1 blocks is one split. An empty file is
// one split as well, and so is a file that can only be read from its beginning or whose size is not known.
func cutSplits(files []transfer.File, want int, cuts func(transfer.File) bool) []Split {
	var total int64
	for _, f := range files {
		total += max(f.Size, 0)
	}
	size := max(1, min(total/int64(max(want, 1)), blockSize))
	var all []Split
	for _, f := range files {
		switch {
		case f.Size == 0:
			all = append(all, Split{f, 0, 0})
		case f.Size < 0 || !cuts(f):
			all = append(all, Split{f, 0, -1})
		default:
			all = append(all, cut(f, size)...)
		}
	}
	return all
}

func cut(f transfer.File, size int64) []Split {
	var all []Split
	from := int64(0)
	for float64(f.Size-from)/float64(size) > slop {
		all = append(all, Split{f, from, size})
		from += size
	}
	return append(all, Split{f, from, f.Size - from})
}

// Hidden recognises files that Hadoop's formats skip: _SUCCESS, .part-0.crc.
func Hidden(f transfer.File) bool {
	base := path.Base(f.Path)
	return base[0] == '_' || base[0] == '.'
}
