package lint

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path"

	"github.com/muster-agent/muster/appdef/slider"
)

// writeFixes puts the mended files of a folder in place.
func writeFixes(dir string, fixes []slider.Fixed) (err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	for _, fixed := range fixes {
		if err := replace(root, fixed.Name, fixed.After); err != nil {
			return fmt.Errorf("mend %s: %w", fixed.Name, err)
		}
	}
	return nil
}

// replace puts a file in the place of another at once, with its mode. It leaves alone what is no plain file: a link of
// the package may lead outside.
func replace(root *os.Root, name string, data []byte) error {
	info, err := root.Lstat(name)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return errors.New("it is no plain file; write to the one that it leads to")
	}
	part := path.Join(path.Dir(name), ".muster-lint-"+rand.Text())
	f, err := root.OpenFile(part, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Chmod(info.Mode().Perm()), f.Sync(), f.Close()); err == nil {
		err = root.Rename(part, name)
	}
	if err != nil {
		return errors.Join(err, root.Remove(part))
	}
	return nil
}
