package packages

import (
	"fmt"
	"io/fs"
	"path"
	"strings"
	"unicode/utf8"
)

// tree is what an archive has brought so far, by clean name. An entry is taken only where the tree has room for it, so
// that nothing is ever written through a link, and os.Root is the second wall.
type tree struct {
	Limits
	made  map[string]fs.FileMode // type bits
	files int
}

func newTree(l Limits) *tree {
	return &tree{Limits: l, made: map[string]fs.FileMode{".": fs.ModeDir}}
}

// add takes an entry of a kind (fs.FileMode.Type) and gives its clean name, and whether the name was there before.
func (t *tree) add(name string, kind fs.FileMode) (clean string, again bool, err error) {
	if clean, err = t.clean(name); err != nil {
		return "", false, err
	}
	have, again := t.made[clean]
	switch {
	case again && have != kind:
		return "", false, refuse(changedKind, fmt.Sprintf("got a %s where a %s was", KindName(kind), KindName(have)),
			"each name once")
	case again:
		return clean, true, nil
	}
	if err := t.above(clean); err != nil {
		return "", false, err
	}
	t.made[clean] = kind
	return clean, false, t.count()
}

// above takes the folders that a name implies.
func (t *tree) above(clean string) error {
	for i := range len(clean) {
		if clean[i] != '/' {
			continue
		}
		dir := clean[:i]
		have, there := t.made[dir]
		switch {
		case !there:
			t.made[dir] = fs.ModeDir
			if err := t.count(); err != nil {
				return err
			}
		case have == fs.ModeSymlink:
			return refuse(belowLink, fmt.Sprintf("got an entry below the link %.200q", dir),
				"links that nothing lies below: pack the folder that the link names")
		case have != fs.ModeDir:
			return refuse(changedKind, fmt.Sprintf("got an entry below %.200q, which is a %s", dir, KindName(have)),
				"each name once")
		}
	}
	return nil
}

func (t *tree) count() error {
	if t.files++; t.files > t.Files {
		return refuse(tooManyFiles, fmt.Sprintf("got more than %d files", t.Files), "fewer: pack data as one file")
	}
	return nil
}

// clean checks a name and gives it as os.Root takes it: without `.`, double and trailing slashes.
func (t *tree) clean(name string) (string, error) {
	const relative = "a relative path that stays inside"
	switch {
	case name == "":
		return "", refuse(badName, "got no name", "a name")
	case strings.ContainsRune(name, 0):
		return "", refuse(badName, "got a NUL in a name", "names without")
	case !utf8.ValidString(name):
		return "", refuse(badName, "got a name that is no UTF-8", "UTF-8: pack it where LANG is of UTF-8")
	case strings.ContainsRune(name, '\\'):
		return "", refuse(backslash, "got a backslash in a name",
			"/ between folders: pack it with a tool that writes so")
	case path.IsAbs(name):
		return "", refuse(absolutePath, "got an absolute path", relative)
	case len(name) > maxName:
		return "", refuse(longName, fmt.Sprintf("got a name of %d bytes", len(name)),
			fmt.Sprintf("one of at most %d", maxName))
	}
	for element := range strings.SplitSeq(name, "/") {
		if element == ".." {
			return "", refuse(outsidePath, "got a path with ..", relative)
		}
		if len(element) > maxElement {
			return "", refuse(longName, fmt.Sprintf("got an element of %d bytes", len(element)),
				fmt.Sprintf("one of at most %d", maxElement))
		}
	}
	clean := path.Clean(name)
	if strings.Count(clean, "/") > t.Depth {
		return "", refuse(tooDeep, fmt.Sprintf("got %d folders in each other", strings.Count(clean, "/")),
			fmt.Sprintf("at most %d", t.Depth))
	}
	return clean, nil
}

// checkTarget looks at a link's text. Where it leads through other links is seen when all are there.
func checkTarget(name, target string) error {
	const want = "one that stays inside the package"
	switch {
	case target == "" || strings.ContainsRune(target, 0) || len(target) > maxName:
		return refuse(badLink, fmt.Sprintf("got a link to %.200q", target), want)
	case path.IsAbs(target), !fs.ValidPath(path.Join(path.Dir(name), target)):
		return refuse(badLink, fmt.Sprintf("got a link to %.200q", target), want)
	}
	return nil
}
