// Package checkpoint finds the newest whole checkpoint in a folder. A save that is being written, or
// that lost one of its files, does not count: a restart from it would fail or start from zero.
package checkpoint

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// Checkpoint is one whole save.
type Checkpoint struct {
	Step int64
	Path string // within the folder; for TensorFlow the prefix of its files
}

// Rule says how a folder's checkpoints are recognised: by a glob whose match carries the step as its
// last number, else as the framework writes them.
type Rule struct {
	Pattern   string
	Framework string
}

// Newest is the whole checkpoint with the highest step, up to upTo where one is named and something
// that old is still there; false when there is none, also when the folder does not exist yet.
func (r Rule) Newest(dir fs.FS, upTo *int64) (Checkpoint, bool, error) {
	all, err := r.List(dir)
	if err != nil || len(all) == 0 {
		return Checkpoint{}, false, err
	}
	for _, c := range slices.Backward(all) {
		if upTo != nil && c.Step <= *upTo {
			return c, true, nil
		}
	}
	return all[len(all)-1], true, nil
}

// List gives all whole checkpoints, the newest last.
func (r Rule) List(dir fs.FS) ([]Checkpoint, error) {
	var all []Checkpoint
	var err error
	switch {
	case r.Pattern != "":
		all, err = byPattern(dir, r.Pattern)
	case r.Framework == "tensorflow":
		all, err = tensorflow(dir)
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if err != nil {
		return nil, fmt.Errorf("list checkpoints: %w", err)
	}
	slices.SortFunc(all, func(a, b Checkpoint) int {
		return cmp.Or(cmp.Compare(a.Step, b.Step), cmp.Compare(a.Path, b.Path))
	})
	return all, nil
}

// byPattern takes files and folders that are not empty. A program that writes under another name and
// renames makes them whole.
func byPattern(dir fs.FS, pattern string) ([]Checkpoint, error) {
	names, err := fs.Glob(dir, pattern)
	if err != nil {
		return nil, fmt.Errorf("pattern %q: %w", pattern, err)
	}
	var all []Checkpoint
	for _, name := range names {
		step, ok := lastNumber(path.Base(name))
		info, err := fs.Stat(dir, name)
		if !ok || err != nil || !info.IsDir() && info.Size() == 0 {
			continue // gone meanwhile, or not one of ours
		}
		if info.IsDir() {
			if in, err := fs.ReadDir(dir, name); err != nil || len(in) == 0 {
				continue
			}
		}
		all = append(all, Checkpoint{Step: step, Path: name})
	}
	return all, nil
}

// tensorflow reads the V2 format of tf.train.Saver: `<prefix>-<step>.index` beside every shard of
// `<prefix>-<step>.data-00000-of-0000N`; the index is written last.
func tensorflow(dir fs.FS) ([]Checkpoint, error) {
	entries, err := fs.ReadDir(dir, ".")
	if err != nil {
		return nil, err
	}
	shards := map[string]map[int]bool{}
	total := map[string]int{}
	for _, e := range entries {
		prefix, of, ok := strings.Cut(e.Name(), ".data-")
		if !ok {
			continue
		}
		i, n, ok := shardOf(of)
		if !ok {
			continue
		}
		if shards[prefix] == nil {
			shards[prefix] = map[int]bool{}
		}
		shards[prefix][i], total[prefix] = true, n
	}
	var all []Checkpoint
	for _, e := range entries {
		prefix, ok := strings.CutSuffix(e.Name(), ".index")
		if !ok || total[prefix] == 0 || len(shards[prefix]) != total[prefix] {
			continue
		}
		at := strings.LastIndexByte(prefix, '-')
		step, err := strconv.ParseInt(prefix[at+1:], 10, 64)
		if at < 0 || err != nil {
			continue
		}
		all = append(all, Checkpoint{Step: step, Path: prefix})
	}
	return all, nil
}

// shardOf reads `00000-of-00002`.
func shardOf(s string) (i, n int, ok bool) {
	a, b, found := strings.Cut(s, "-of-")
	i, errA := strconv.Atoi(a)
	n, errB := strconv.Atoi(b)
	return i, n, found && errA == nil && errB == nil && 0 <= i && i < n
}

// lastNumber is the last run of digits in a name.
func lastNumber(name string) (int64, bool) {
	end := strings.LastIndexAny(name, "0123456789") + 1
	start := end
	for start > 0 && name[start-1] >= '0' && name[start-1] <= '9' {
		start--
	}
	n, err := strconv.ParseInt(name[start:end], 10, 64)
	return n, err == nil
}
