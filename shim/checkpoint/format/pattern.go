package format

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"
)

// Whole is when a match of a pattern counts, beyond that it is there and not empty.
type Whole struct {
	Files  []string      // globs: a folder has a file of each that is not empty
	Size   int64         // bytes, at least, of all its files
	Steady time.Duration // nothing of it has changed for so long
}

// byPattern takes files and folders. What is in them is looked at as far as their form is known.
func (r Rule) byPattern(dir fs.FS) ([]candidate, error) {
	pattern := r.Pattern
	if pattern == "" {
		pattern = "*"
	}
	names, err := fs.Glob(dir, pattern)
	if err != nil {
		return nil, fmt.Errorf("pattern %q: %w", pattern, err)
	}
	if len(names) == 0 {
		_, err := fs.Stat(dir, ".") // Glob tells of no error of a folder that cannot be read
		return nil, err
	}
	var all []candidate
	for _, name := range names {
		step, ok := lastNumber(path.Base(name))
		if !ok || hidden(path.Base(name)) {
			continue
		}
		if c, ok := r.match(dir, name); ok {
			c.step = step
			all = append(all, c)
		}
	}
	return all, nil
}

// match is one match of the pattern; false: it is gone meanwhile, or no checkpoint of this rule.
func (r Rule) match(dir fs.FS, name string) (candidate, bool) {
	c := candidate{path: name, steady: r.Whole.Steady}
	f, mode, err := entry(dir, name)
	switch {
	case err != nil:
		return c, false
	case mode.IsDir():
		if c.files, err = below(dir, name); err != nil {
			return c, false
		}
	case mode.IsRegular():
		c.files = []File{f}
	default:
		return c, false
	}
	if r.Marker != "" {
		marker := r.markerOf(name, mode.IsDir())
		f, mode, err := entry(dir, marker)
		if err != nil || !mode.IsRegular() {
			if r.Pattern == "" {
				return c, false // not every file is a checkpoint
			}
			c.lacks = "no " + marker
		} else if !slices.ContainsFunc(c.files, func(o File) bool { return o.Name == marker }) {
			c.files = append(c.files, f)
		}
	}
	if c.lacks == "" {
		c.lacks = r.Whole.lacks(name, c.files)
	}
	files, folder, framework := c.files, mode.IsDir(), r.Framework
	c.check = func(dir fs.FS) (int64, error) { return -1, known(dir, name, folder, files, framework) }
	return c, true
}

func (r Rule) markerOf(name string, folder bool) string {
	switch {
	case strings.Contains(r.Marker, "{}"):
		return path.Clean(strings.ReplaceAll(r.Marker, "{}", name))
	case folder:
		return path.Join(name, r.Marker)
	}
	return name + r.Marker
}

// lacks is the first condition that does not hold; empty: all do.
func (w Whole) lacks(name string, files []File) string {
	sum := int64(0)
	for _, f := range files {
		sum += f.Size
	}
	switch {
	case sum == 0:
		return "it is empty"
	case sum < w.Size:
		return fmt.Sprintf("it has %d bytes, want %d", sum, w.Size)
	}
	for _, glob := range w.Files {
		if !slices.ContainsFunc(files, func(f File) bool {
			within, ok := strings.CutPrefix(f.Name, name+"/")
			match, err := path.Match(glob, within)
			return ok && err == nil && match && f.Size > 0
		}) {
			return "no file " + glob + " in it"
		}
	}
	return ""
}
