package format

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Checkpoint is one whole save.
type Checkpoint struct {
	Step  int64
	Path  string // within the folder; for TensorFlow the prefix of its files
	Files []File // all that belong to it, those last that make it whole
}

// File is one file of a checkpoint.
type File struct {
	Name    string // within the folder, with / between elements
	Size    int64  // bytes
	ModTime time.Time
}

// torn is a save that does not count, and why.
type torn struct {
	Step  int64
	Path  string
	Files []File // what there is of it
	Why   string
}

// Found is what a folder has, each oldest first.
type Found struct {
	Whole []Checkpoint
	Torn  []torn
	// Others are files and folders of a folder in which nothing has the name of a checkpoint, sorted; a folder's name
	// ends with /.
	Others []string
}

// Stamp changes with every file of a checkpoint, whole or torn.
func (f Found) Stamp() string {
	sum := sha256.New()
	for _, c := range f.Whole {
		fmt.Fprintf(sum, "%s\n%s", c.Path, c.Stamp())
	}
	for _, t := range f.Torn {
		fmt.Fprintf(sum, "%s: %s\n%s", t.Path, t.Why, stamp(t.Files))
	}
	return string(sum.Sum(nil))
}

// Newest is the whole checkpoint with the highest step; false when there is none.
func (f Found) Newest() (Checkpoint, bool) {
	if len(f.Whole) == 0 {
		return Checkpoint{}, false
	}
	return f.Whole[len(f.Whole)-1], true
}

// At is the checkpoint of a step.
func (f Found) At(step int64) (Checkpoint, bool) {
	for _, c := range slices.Backward(f.Whole) {
		if c.Step == step {
			return c, true
		}
	}
	return Checkpoint{}, false
}

// Stamp tells one save of a step from another: it changes when a file of it is written again.
func (c Checkpoint) Stamp() string { return stamp(c.Files) }

// Bytes is the size of all its files.
func (c Checkpoint) Bytes() int64 {
	sum := int64(0)
	for _, f := range c.Files {
		sum += f.Size
	}
	return sum
}

// SavedAfter tells that a file of it was written after that time.
func (c Checkpoint) SavedAfter(t time.Time) bool {
	return slices.ContainsFunc(c.Files, func(f File) bool { return f.ModTime.After(t) })
}

// Rule says how a folder's checkpoints are recognised: by a glob whose match carries the step as its last number, else
// as the framework writes them.
type Rule struct {
	Framework string
	Pattern   string
	Whole     Whole // when a match of the pattern is whole
	// Marker is the file that says so: its name in a folder that matches, what follows the name of a file that matches,
	// or a path in which {} stands for the match. With a marker and no pattern, everything that has one counts.
	Marker string
}

// Equal tells that two rules recognise the same.
func (r Rule) Equal(o Rule) bool {
	return r.Framework == o.Framework && r.Pattern == o.Pattern && r.Marker == o.Marker &&
		r.Whole.Size == o.Whole.Size && r.Whole.Steady == o.Whole.Steady && slices.Equal(r.Whole.Files, o.Whole.Files)
}

// Look finds a folder's checkpoints. A folder that does not exist yet has none.
func (r Rule) Look(dir fs.FS) (Found, error) { return (&Looker{Rule: r}).Look(dir) }

// Looker looks at a folder again and again; what has not changed is not read again. It is safe for concurrent use.
type Looker struct {
	Rule Rule

	mu   sync.Mutex
	seen map[string]verdict
}

// verdict is what was found of a candidate whose files had this stamp.
type verdict struct {
	stamp string
	step  int64
	err   error
}

// candidate is what has the name of a checkpoint.
type candidate struct {
	step   int64 // below 0: check tells
	path   string
	files  []File
	lacks  string // what it has not, as the names alone show; empty: nothing
	check  func(dir fs.FS) (step int64, err error)
	steady time.Duration // it counts when it has not changed for so long
}

// Look finds a folder's checkpoints, as Rule.Look does.
func (l *Looker) Look(dir fs.FS) (Found, error) {
	all, err := l.Rule.candidates(dir)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if err != nil {
		return Found{}, fmt.Errorf("list checkpoints: %w", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	was := l.seen
	l.seen = make(map[string]verdict, len(all))
	var found Found
	for _, c := range all {
		v := c.judge(dir, was[c.path])
		if v.step < 0 {
			continue // nothing tells its step: it is something else
		}
		if !errors.Is(v.err, errChanging) {
			l.seen[c.path] = v
		}
		if v.err != nil {
			found.Torn = append(found.Torn, torn{Step: v.step, Path: c.path, Files: c.files, Why: v.err.Error()})
			continue
		}
		found.Whole = append(found.Whole, Checkpoint{Step: v.step, Path: c.path, Files: c.files})
	}
	if len(found.Whole) == 0 && len(found.Torn) == 0 {
		found.Others = others(dir)
	}
	slices.SortFunc(found.Whole, func(a, b Checkpoint) int {
		return cmp.Or(cmp.Compare(a.Step, b.Step), cmp.Compare(a.Path, b.Path))
	})
	slices.SortFunc(found.Torn, func(a, b torn) int {
		return cmp.Or(cmp.Compare(a.Step, b.Step), cmp.Compare(a.Path, b.Path))
	})
	return found, nil
}

// others are the names in a folder; of one that cannot be read there are none.
func others(dir fs.FS) (names []string) {
	entries, _ := fs.ReadDir(dir, ".")
	for _, e := range entries {
		switch {
		case hidden(e.Name()):
		case e.IsDir():
			names = append(names, e.Name()+"/")
		case e.Type().IsRegular():
			names = append(names, e.Name())
		}
	}
	return names
}

// errChanging is a save that may be whole soon without another change of it.
var errChanging = errors.New("it was written just now")

func (c candidate) judge(dir fs.FS, was verdict) verdict {
	v := verdict{stamp: stamp(c.files), step: c.step}
	switch {
	case v.stamp == was.stamp && was.stamp != "":
		return was
	case c.lacks != "":
		v.err = errors.New(c.lacks)
		return v
	}
	for _, f := range c.files {
		if c.steady > 0 && time.Since(f.ModTime) < c.steady {
			v.err = errChanging
			return v
		}
	}
	step, err := c.check(dir)
	if c.step < 0 {
		v.step = step
		if err != nil && step < 0 {
			v.step = 0 // torn, and nobody knows its step
		}
	}
	v.err = err
	return v
}

// candidates are what has the name of a checkpoint, by the rule's own pattern or the framework's ways.
func (r Rule) candidates(dir fs.FS) ([]candidate, error) {
	if r.Pattern != "" || r.Marker != "" {
		return r.byPattern(dir)
	}
	switch r.Framework {
	case "tensorflow", "tensor2tensor":
		return tensorflow(dir)
	case "pytorch":
		return pytorch(dir)
	case "mxnet":
		return mxnet(dir)
	case "xgboost":
		return xgboost(dir)
	case "lightgbm":
		return lightgbm(dir)
	}
	return nil, nil
}

// entry is a file or folder of a folder.
func entry(dir fs.FS, name string) (File, fs.FileMode, error) {
	info, err := fs.Stat(dir, name)
	if err != nil {
		return File{}, 0, err
	}
	return File{Name: name, Size: info.Size(), ModTime: info.ModTime()}, info.Mode(), nil
}

// listed are the files directly in a folder, by name. What is gone by the time that it is looked at is not there.
func listed(dir fs.FS) (files map[string]File, folders []string, err error) {
	entries, err := fs.ReadDir(dir, ".")
	if err != nil {
		return nil, nil, err
	}
	files = make(map[string]File, len(entries))
	for _, e := range entries {
		switch {
		case hidden(e.Name()):
		case e.IsDir():
			folders = append(folders, e.Name())
		case e.Type().IsRegular():
			if info, err := e.Info(); err == nil {
				files[e.Name()] = File{Name: e.Name(), Size: info.Size(), ModTime: info.ModTime()}
			}
		}
	}
	return files, folders, nil
}

// hidden tells names that are no checkpoint's: those that begin with a dot are in the making, or set aside by us.
func hidden(name string) bool { return strings.HasPrefix(name, ".") }

// deepest is how many nested folders are looked into.
const deepest = 64

// below are all files of a folder and of those in it; bounded, since a program may put anything there.
func below(dir fs.FS, top string) ([]File, error) {
	var files []File
	entries := 0
	err := fs.WalkDir(dir, top, func(name string, d fs.DirEntry, err error) error {
		if entries++; entries > 2*MostFiles || strings.Count(name, "/") > deepest {
			return fmt.Errorf("%s has more than %d folders, or deeper ones than %d", top, MostFiles, deepest)
		}
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if files = append(files, File{Name: name, Size: info.Size(), ModTime: info.ModTime()}); len(files) > MostFiles {
			return fmt.Errorf("%s has more than %d files", top, MostFiles)
		}
		return nil
	})
	return files, err
}

func stamp(files []File) string {
	var b strings.Builder
	for _, f := range files {
		fmt.Fprintf(&b, "%s %d %d\n", f.Name, f.Size, f.ModTime.UnixNano())
	}
	return b.String()
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

// stem is a file's name without the folder and its last suffix.
func stem(name string) string {
	base := path.Base(name)
	return strings.TrimSuffix(base, path.Ext(base))
}
