package transfer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/muster-agent/muster/shim/store"
)

// File is a file in a store.
type File struct {
	Store store.Store
	Path  string
	Size  int64 // bytes; -1: not known
	// URL is how a process is told of it; empty: Path, of a file of this host.
	URL string
	// Version changes when the content does; empty: not known.
	Version string
	// Fixed: the file that is opened must be the one that was listed. Its path may name another by then.
	Fixed bool
}

// Name is the file's name outside of its store.
func (f File) Name() string { return cmp.Or(f.URL, f.Path) }

// Shown is the file's name in errors and logs: with its filesystem, without secrets of its URL.
func (f File) Shown() string {
	name := cmp.Or(f.URL, locationOf(f.Store, f.Path))
	if store.SchemeOf(name) == "" {
		return name
	}
	return store.Printable(name)
}

// Deepest is how many nested folders are listed; a deeper folder is a link that leads back.
const Deepest = 64

// Names in a store that belong to its writers, not to the data.
const (
	Temporary = "_temporary" // Hadoop's folder for incomplete files
	Success   = "_SUCCESS"   // Hadoop's mark of a complete output
)

// Listing finds the files of a store.
type Listing struct {
	Store store.Store
	// Without tells which files and folders, by path, are not part of the listing; such a folder is not read. nil: all
	// are part of it.
	Without func(path string) bool
}

// List lists the files of paths and patterns in their order, those of one path sorted; each file once. A folder stands
// for all files below it. A pattern has *, ?, [a-z] and {a,b}, which do not match /. A pattern without a match is
// fs.ErrNotExist.
func (l Listing) List(ctx context.Context, patterns ...string) ([]File, error) {
	var all []File
	seen := map[string]bool{}
	for _, pattern := range patterns {
		var tops []store.Info
		for _, one := range braces(pattern) {
			found, err := l.match(ctx, one)
			if err != nil {
				return nil, err
			}
			tops = append(tops, found...)
		}
		if len(tops) == 0 {
			return nil, &store.Error{
				Op: "list", URL: File{Store: l.Store, Path: pattern}.Shown(),
				Err: fmt.Errorf("no file matches the pattern: %w", fs.ErrNotExist), Hint: "check the path",
			}
		}
		var found []File
		for _, top := range tops {
			below, err := l.walk(ctx, top, 0)
			if err != nil {
				return nil, err
			}
			found = append(found, below...)
		}
		slices.SortFunc(found, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
		for _, f := range found {
			if !seen[f.Path] {
				seen[f.Path] = true
				all = append(all, f)
			}
		}
	}
	return all, nil
}

// Tree lists the files of one path without patterns, sorted.
func (l Listing) Tree(ctx context.Context, top store.Info) ([]File, error) {
	all, err := l.walk(ctx, top, 0)
	slices.SortFunc(all, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	return all, err
}

func (l Listing) walk(ctx context.Context, at store.Info, depth int) ([]File, error) {
	if !at.Dir {
		return []File{{Store: l.Store, Path: at.Path, Size: at.Size, Version: at.Validator}}, nil
	}
	if depth > Deepest {
		return nil, fmt.Errorf("list %s: got more than %d folders in each other, want no link that leads back", at.Path,
			Deepest)
	}
	entries, err := l.entries(ctx, at.Path)
	if err != nil {
		return nil, err
	}
	var all []File
	for _, e := range entries {
		if slices.Contains([]string{Temporary, Success}, path.Base(e.Path)) {
			continue
		}
		below, err := l.walk(ctx, e, depth+1)
		if err != nil {
			return nil, err
		}
		all = append(all, below...)
	}
	return all, nil
}

// entries lists the entries of a folder that are part of the listing.
func (l Listing) entries(ctx context.Context, dir string) ([]store.Info, error) {
	all, err := l.Store.List(ctx, dir)
	if l.Without == nil {
		return all, err
	}
	return slices.DeleteFunc(all, func(e store.Info) bool { return l.Without(e.Path) }), err
}

// match lists the matches of a pattern without braces: none, one or more. A path without a pattern must exist.
func (l Listing) match(ctx context.Context, pattern string) ([]store.Info, error) {
	if !magic(pattern) {
		info, err := l.Store.Stat(ctx, path.Clean(pattern))
		if err != nil {
			return nil, err
		}
		return []store.Info{info}, nil
	}
	at := []store.Info{{Path: "/", Dir: true}}
	for element := range strings.SplitSeq(strings.Trim(path.Clean(pattern), "/"), "/") {
		var next []store.Info
		for _, dir := range at {
			found, err := l.matchIn(ctx, dir, element)
			if err != nil {
				return nil, err
			}
			next = append(next, found...)
		}
		at = next
	}
	return at, nil
}

// matchIn lists the entries of a folder that match an element of a pattern.
func (l Listing) matchIn(ctx context.Context, dir store.Info, element string) ([]store.Info, error) {
	if !dir.Dir {
		return nil, nil
	}
	if !magic(element) {
		info, err := l.Store.Stat(ctx, path.Join(dir.Path, element))
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		return []store.Info{info}, nil
	}
	entries, err := l.entries(ctx, dir.Path)
	if err != nil {
		return nil, err
	}
	var found []store.Info
	for _, e := range entries {
		ok, err := path.Match(element, path.Base(e.Path))
		if err != nil {
			return nil, fmt.Errorf("pattern %q: %w", element, err)
		}
		if ok {
			found = append(found, e)
		}
	}
	return found, nil
}

func magic(text string) bool { return strings.ContainsAny(text, `*?[`) }

// mostBraces is how many patterns a pattern with braces may expand to.
const mostBraces = 1000

// braces expands a pattern with {a,b} to patterns without; the innermost group is expanded first.
func braces(pattern string) []string {
	done, todo := []string{}, []string{pattern}
	for len(todo) > 0 && len(done)+len(todo) <= mostBraces {
		one := todo[0]
		todo = todo[1:]
		end := strings.IndexByte(one, '}')
		start := -1
		if end >= 0 {
			start = strings.LastIndexByte(one[:end], '{')
		}
		if start < 0 {
			done = append(done, one)
			continue
		}
		for choice := range strings.SplitSeq(one[start+1:end], ",") {
			todo = append(todo, one[:start]+choice+one[end+1:])
		}
	}
	return append(done, todo...)
}
