package slider

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/moby/sys/mountinfo"

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
// that was interrupted continues where it stopped. An app of which a folder is a mount point or a link stays where it
// is, and is usable there.

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
	if a.stays, err = a.obstacle(); err != nil {
		return nil, err
	}
	if a.stays != "" {
		fmt.Fprintf(c.Err, "warning: %s; %s stays in %s\n", a.stays, name, a.dir)
		return a, nil
	}
	f, err := a.onHost(ctx)
	if err != nil {
		return nil, err
	}
	if a.runs(&f) {
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
	return a.move()
}

// obstacle says which folder of an app of the old store no rename can move; empty: none.
func (a *app) obstacle() (string, error) {
	mounts, err := mountsBelow(string(a.home))
	if err != nil {
		return "", exit.With(exit.Forbidden, err)
	}
	for _, dir := range []string{a.home.oldStore(), a.dir, a.work()} {
		info, err := os.Lstat(dir)
		switch {
		case errors.Is(err, fs.ErrNotExist): // it never ran
			continue
		case err != nil:
			return "", exit.With(exit.Forbidden, err)
		case info.Mode()&fs.ModeSymlink != 0:
			return dir + " is a link", nil
		}
		at, err := filepath.EvalSymlinks(dir)
		if err != nil {
			return "", exit.With(exit.Forbidden, err)
		}
		if slices.Contains(mounts, at) {
			return dir + " is a mount point", nil
		}
	}
	return "", nil
}

// move moves an app of the old store, whose work folder is locked, and opens it in its new place.
func (a *app) move() (*app, error) {
	if err := a.moveTo(filepath.Join(string(a.home), a.name)); err != nil {
		return nil, fmt.Errorf("move %s, which an earlier muster made: %w", a.name, err)
	}
	return a.home.opened(a.call, a.name)
}

// moveTo moves it to its work folder. Files that others have put beside it stay. After an error the next command
// continues.
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
	if err := a.gather(kept, to); err != nil {
		return err
	}
	if err := moveFile(a.work(), to); err != nil {
		return err
	}
	_, _ = os.Remove(a.dir), os.Remove(a.home.oldStore()) // they stay where something else lies in them
	return nil
}

// gather moves everything into the old work folder, the record last, and has it name the new one.
func (a *app) gather(kept, to string) error {
	for _, step := range [][2]string{
		{filepath.Join(a.dir, definitions), filepath.Join(kept, definitions)},
		{filepath.Join(a.dir, detach.Out), filepath.Join(a.work(), detach.Out)},
		{filepath.Join(a.dir, detach.Err), filepath.Join(a.work(), detach.Err)},
	} {
		if err := moveFile(step[0], step[1]); err != nil {
			return err
		}
	}
	if err := a.rewritePaths(a.work(), to); err != nil {
		return exit.With(exit.Forbidden, err)
	}
	return moveFile(filepath.Join(a.dir, recordFile), filepath.Join(kept, recordFile))
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
	state := status.Dir(cmp.Or(a.record.Run.StateDir, string(a.stateDir("")))).App(a.name) // not of --state-dir
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

// mountsBelow are the mount points at or below a folder: a removal would remove the files where they come from.
func mountsBelow(dir string) ([]string, error) {
	at, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil, err
	}
	mounts, err := mountinfo.GetMounts(mountinfo.PrefixFilter(at))
	var below []string
	for _, m := range mounts {
		below = append(below, m.Mountpoint)
	}
	slices.Sort(below)
	return below, err
}
