// Package madeapp writes an app that a command line describes as the app package that muster's verbs read. oneline and
// hboxjob say what the package has.
//
// A package lies in a folder of its own, which its maker removes or keeps under a name.
package madeapp

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/appdef/slider"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/workdir"
)

// Make has a package written into a new folder below dir, which remove takes away again.
func Make(dir string, write func(dir string) error) (made string, remove func() error, err error) {
	err = os.MkdirAll(dir, 0o755)
	if err == nil {
		made, err = os.MkdirTemp(dir, workdir.MadeApp)
	}
	if err != nil {
		return "", nil, exit.With(exit.Forbidden,
			fmt.Errorf("make folder: %w; give --work-dir one that can be written", err))
	}
	remove = func() error { return os.RemoveAll(made) }
	if err := write(made); err != nil {
		return "", nil, errors.Join(err, remove())
	}
	return made, remove, nil
}

// Documents writes the package's documents.
func Documents(dir string, app appdef.App) error {
	documents, _ := slider.Write(app) // what it loses, an App of a command line has not
	for name, text := range documents {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// Keep gives a package that was made beside it the name to, which must be free.
func Keep(made, to string) error {
	if _, err := os.Lstat(to); !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s is there already: nothing is written over", to)
	}
	return errors.Join(os.Chmod(made, 0o755), os.Rename(made, to))
}
