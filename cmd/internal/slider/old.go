package slider

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/muster-agent/muster/cmd/internal/detach"
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/checkpoint"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/fault"
	"github.com/muster-agent/muster/shim/files"
	"github.com/muster-agent/muster/shim/status"
	"github.com/muster-agent/muster/shim/workdir"
)

// An earlier muster kept the apps of Slider's commands in a store of their own, muster/slider/NAME:
//
//	slider.json, definition/, run.out, run.err   as today
//	work/                                        the work folder
//
// Such an app is moved once. Everything is first moved into the old work folder, the record last, and that folder is
// then renamed to the new one: at each moment the app is found either in the old place or in the new one, and a move
// that was interrupted goes on where it stopped. Where a rename is not possible the steps are taken back, and the app
// stays usable where it is.

// oldStore is the folder of that store.
func (h home) oldStore() string { return filepath.Join(string(h), "slider") }

// hasOld tells whether an app lies in the old store.
func (h home) hasOld(name string) bool {
	dir := filepath.Join(h.oldStore(), name)
	for _, path := range []string{filepath.Join(dir, recordFile), filepath.Join(dir, oldWork, keptIn, recordFile)} {
		if _, err := os.Lstat(path); err == nil {
			return true
		}
	}
	return false
}

func (h home) inOldStore(c *call, name string) *app {
	a := h.app(c, name)
	a.dir, a.old = filepath.Join(h.oldStore(), name), true
	return a
}

// adopt opens an app that is locked. One of the old store is moved first, unless its run goes on.
func (h home) adopt(ctx context.Context, c *call, name string) (*app, error) {
	if !h.hasOld(name) {
		return h.opened(c, name)
	}
	a := h.inOldStore(c, name)
	err := a.read()
	if errors.Is(err, fs.ErrNotExist) { // the record has moved already
		a.record, err = readRecord(name, a.dir, a.work(), filepath.Join(a.work(), keptIn))
	}
	if err != nil {
		return nil, err
	}
	f, err := a.onHost(ctx)
	if err != nil {
		return nil, err
	}
	if runs(&f) {
		return a, nil
	}
	if err := os.Mkdir(a.work(), 0o755); err != nil && !errors.Is(err, fs.ErrExist) { // it never ran
		return nil, exit.With(exit.Forbidden, err)
	}
	if err := checkOwn(a.work()); err != nil {
		return nil, err
	}
	lock, err := workdir.LockRun(a.work())
	if fault.Is(err, registry.ClassHost) { // its run begins or ends
		return a, nil
	}
	if err != nil {
		return nil, exit.With(exit.Forbidden, err)
	}
	defer func() { _ = lock.Release() }() // this process ends
	moved, err := a.move()
	if errors.Is(err, unix.EXDEV) || errors.Is(err, unix.EBUSY) { // a mount point, or another filesystem
		a.unmovable = true
		fmt.Fprintf(c.Err, "warning: %v; it stays in %s\n", err, a.dir)
		return a, nil
	}
	return moved, err
}

// move moves an app of the old store, whose work folder is locked, and opens it in its new place.
func (a *app) move() (*app, error) {
	if err := a.moveTo(filepath.Join(string(a.home), a.name)); err != nil {
		return nil, fmt.Errorf("move %s, which an earlier muster made: %w", a.name, err)
	}
	return a.home.opened(a.call, a.name)
}

// moveTo moves it to its work folder. Files that others have put beside it stay. If it fails on the way, the steps
// before are taken back.
func (a *app) moveTo(to string) error {
	if err := free(to); err != nil {
		return err
	}
	kept := filepath.Join(a.work(), keptIn)
	if err := os.Mkdir(kept, 0o755); err != nil && !errors.Is(err, fs.ErrExist) { // components may be of other users
		return exit.With(exit.Forbidden, err)
	}
	if err := checkOwn(kept); err != nil {
		return err
	}
	err := a.gather(kept, to)
	if err == nil {
		err = moveFile(a.work(), to)
	}
	if errors.Is(err, unix.EXDEV) || errors.Is(err, unix.EBUSY) {
		return errors.Join(err, a.scatter(kept, to))
	}
	if err != nil {
		return err
	}
	_, _ = os.Remove(a.dir), os.Remove(a.home.oldStore()) // they stay where something else lies in them
	return nil
}

// beside are the files beside the old work folder, and where they lie in it before it is moved. The record is the last.
func (a *app) beside(kept string) [][2]string {
	return [][2]string{
		{filepath.Join(a.dir, definitions), filepath.Join(kept, definitions)},
		{filepath.Join(a.dir, detach.Out), filepath.Join(a.work(), detach.Out)},
		{filepath.Join(a.dir, detach.Err), filepath.Join(a.work(), detach.Err)},
		{filepath.Join(a.dir, recordFile), filepath.Join(kept, recordFile)},
	}
}

// gather moves everything into the old work folder and has it name the new one.
func (a *app) gather(kept, to string) error {
	all := a.beside(kept)
	for i, step := range all {
		if i == len(all)-1 {
			if err := a.rewritePaths(a.work(), to); err != nil {
				return exit.With(exit.Forbidden, err)
			}
		}
		if err := moveFile(step[0], step[1]); err != nil {
			return err
		}
	}
	return nil
}

// scatter takes back what gather has done.
func (a *app) scatter(kept, to string) error {
	for _, step := range slices.Backward(a.beside(kept)) {
		if err := moveFile(step[1], step[0]); err != nil {
			return err
		}
	}
	_ = os.Remove(kept) // empty; a later move makes it again or finds it
	return exit.With(exit.Forbidden, a.rewritePaths(to, a.work()))
}

// free is an error that names the path when a file is there.
func free(path string) error {
	switch _, err := os.Lstat(path); {
	case err == nil:
		return exit.With(exit.Held, fmt.Errorf("%s is in the way: move it away", path))
	case !errors.Is(err, fs.ErrNotExist):
		return exit.With(exit.Forbidden, err)
	}
	return nil
}

// moveFile renames a file or folder, and replaces nothing. One that is not there has been moved before, or never was.
func moveFile(from, to string) error {
	if _, err := os.Lstat(from); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err := free(to); err != nil {
		return err
	}
	return exit.With(exit.Forbidden, os.Rename(from, to))
}

// rewritePaths has the files that describe the last run, and the state files of TensorFlow in the checkpoint folder,
// name another work folder.
func (a *app) rewritePaths(from, to string) error {
	if err := checkpoint.RewriteStates(filepath.Join(a.work(), "checkpoint"), from, to); err != nil {
		return err
	}
	paths := []string{filepath.Join(a.work(), "app.json"), filepath.Join(a.work(), "result.json")}
	state := a.lookup().State.App(a.name)
	entries, err := os.ReadDir(state)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, e := range entries {
		if ending := filepath.Ext(e.Name()); ending == ".json" || ending == ".place" {
			paths = append(paths, filepath.Join(state, e.Name()))
		}
	}
	rename := strings.NewReplacer(`"`+from+`"`, `"`+to+`"`, `"`+from+`/`, `"`+to+`/`)
	for _, path := range paths {
		text, err := files.ReadPlain(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		if renamed := rename.Replace(string(text)); renamed != string(text) {
			if err := status.WriteJSON(path, json.RawMessage(renamed)); err != nil {
				return err
			}
		}
	}
	return nil
}
