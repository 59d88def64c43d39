package files

import (
	"errors"
	"io/fs"
	"os"
)

// Unnamed makes a file in a folder that has its name for a moment only: the file goes with the agent that holds it
// open.
func Unnamed(folder *os.Root, name string) (*os.File, error) {
	if err := folder.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	f, err := folder.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	if err := folder.Remove(name); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}
