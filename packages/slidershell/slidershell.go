package slidershell

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
)

// embedded are the sources of the library, with one pattern for each depth. The patterns name sources only, so that no
// file that a Python leaves beside them is embedded.
//
//go:embed python/resource_management/*.py
//go:embed python/resource_management/*/*.py
//go:embed python/resource_management/*/*/*.py
var embedded embed.FS

// library is the library, with resource_management/__init__.py at its top: what PYTHONPATH names.
func library() fs.FS {
	sub, err := fs.Sub(embedded, "python")
	if err != nil {
		panic(err) // the name is a constant
	}
	return sub
}

// LayOut writes the library below dir of root, in place of what is there. dir is relative and its parent exists.
func LayOut(root *os.Root, dir string) error {
	if err := root.RemoveAll(dir); err != nil {
		return fmt.Errorf("lay out slidershell %s: %w", dir, err)
	}
	err := fs.WalkDir(library(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		target := path.Join(dir, name)
		if d.IsDir() {
			return layFolder(root, target)
		}
		return layFile(root, name, target)
	})
	if err != nil {
		return fmt.Errorf("lay out slidershell %s: %w", dir, err)
	}
	return nil
}

func layFolder(root *os.Root, target string) error {
	if err := root.Mkdir(target, 0o755); err != nil {
		return err
	}
	return root.Chmod(target, 0o755) // whatever the umask is
}

func layFile(root *os.Root, name, target string) error {
	content, err := fs.ReadFile(library(), name)
	if err != nil {
		return err
	}
	f, err := root.OpenFile(target, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	return errors.Join(err, f.Chmod(0o644), f.Close())
}
