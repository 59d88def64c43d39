package checkpoint

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/muster-agent/muster/shim/checkpoint/format"
	"github.com/muster-agent/muster/shim/files"
)

// quarantine moves checkpoints newer than a step, complete or torn, into `.muster-set-aside-<why>/`, so that a program
// that looks for itself cannot resume from a step that its peers lack. It gives the names of the moved files. Nothing
// is ever deleted or replaced: where that folder is there already (an earlier life of the registry had this generation,
// too, or another host does the same) it has a number more, `.muster-set-aside-<why>.1/`.
func quarantine(root files.UserFolder, found format.Found, step int64, why string) ([]string, error) {
	to, err := asideFolder(root, why)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Remove(to) }() // where nothing came into it
	var moved []string
	move := func(name string, files []format.File) error {
		for _, one := range tops(name, files) {
			err := root.MkdirAll(path.Join(to, path.Dir(one)), 0o755)
			if err == nil {
				err = root.Rename(one, path.Join(to, one))
			}
			if err != nil && !errors.Is(err, fs.ErrNotExist) { // its program has removed it
				return fmt.Errorf("set %s aside: %w", one, err)
			}
		}
		moved = append(moved, name)
		return nil
	}
	var all error
	for _, c := range found.Whole {
		if c.Step > step {
			all = errors.Join(all, move(c.Path, c.Files))
		}
	}
	for _, t := range found.Torn {
		if t.Step > step {
			all = errors.Join(all, move(t.Path, t.Files))
		}
	}
	return moved, all
}

// mostAside bounds the folders of one generation.
const mostAside = 10000

// asideFolder makes a folder that nobody has used.
func asideFolder(root files.UserFolder, why string) (string, error) {
	first := ownNames + "set-aside-" + why
	to := first
	for n := 1; ; n++ {
		err := root.Mkdir(to, 0o755)
		if !errors.Is(err, fs.ErrExist) || n > mostAside {
			return to, err
		}
		to = first + "." + strconv.Itoa(n)
	}
}

// tops are what has to be moved: a folder as such, else its files; those first without which it is not whole.
func tops(name string, files []format.File) []string {
	var all []string
	for _, f := range slices.Backward(files) {
		one := f.Name
		if strings.HasPrefix(one, name+"/") {
			one = name
		}
		if !slices.Contains(all, one) {
			all = append(all, one)
		}
	}
	return all
}
