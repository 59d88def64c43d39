package files

import (
	"errors"
	"io/fs"
	"os"
	"sync"
)

// unnamed has one file at a time have its name: another one of that name would be taken for what an agent has left that
// was killed in this moment.
var unnamed sync.Mutex

// Unnamed makes a file in a folder that has its name for a moment only: the file goes with the agent that holds it
// open.
func Unnamed(folder *os.Root, name string) (*os.File, error) {
	unnamed.Lock()
	defer unnamed.Unlock()
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
