package slider

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/cmd/internal/apps"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/hostlock"
)

// named is the app that the command line names, and where it lies or will lie.
func (c *call) named() (home, string, error) {
	name, err := c.name()
	if err != nil {
		return "", "", err
	}
	h, err := openHome()
	return h, name, err
}

// open finds the app that the command line names.
func (c *call) open(ctx context.Context) (*app, error) {
	h, name, err := c.named()
	if err != nil {
		return nil, err
	}
	return h.find(ctx, c, name)
}

// find finds an app. One that an earlier muster made is moved to its work folder first.
func (h home) find(ctx context.Context, c *call, name string) (*app, error) {
	if err := checkName(name); err != nil {
		return nil, err
	}
	if !h.hasOld(name) {
		return h.opened(c, name)
	}
	lock, err := h.lock(name)
	if err != nil { // another command is about to move it, or leaves it there because it runs
		if a := h.inOldStore(c, name); a.read() == nil {
			return a, nil
		}
		return nil, err
	}
	defer func() { _ = lock.Release() }() // this process ends
	return h.adopt(ctx, c, name)
}

// openLocked is open, and keeps other commands from the app until the lock is released.
func (c *call) openLocked(ctx context.Context) (*app, *hostlock.Lock, error) {
	h, name, err := c.named()
	if err != nil {
		return nil, nil, err
	}
	lock, err := h.lock(name)
	if err != nil {
		return nil, nil, err
	}
	a, err := h.adopt(ctx, c, name)
	if err != nil {
		return nil, nil, errors.Join(err, lock.Release())
	}
	return a, lock, nil
}

// lock keeps other commands from making, changing, starting and destroying the app.
func (h home) lock(name string) (*hostlock.Lock, error) {
	lock, err := hostlock.Take("slider" + filepath.Join(string(h), name))
	if errors.Is(err, hostlock.ErrHeld) {
		return nil, exit.With(exit.Held, fmt.Errorf("another muster slider is busy with %s", name))
	}
	return lock, err
}

// names are the apps that were created here, sorted.
func (h home) names() ([]string, error) {
	var names []string
	for _, dir := range []string{string(h), h.oldStore()} {
		entries, err := os.ReadDir(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, exit.With(exit.Forbidden, err)
		}
		for _, e := range entries {
			name := e.Name()
			_, err := os.Lstat(filepath.Join(string(h), name, keptIn, recordFile))
			if appdef.ValidName(name) && (err == nil || h.hasOld(name)) {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// Names are the apps that were created here, for completion.
func Names() ([]string, error) {
	h, err := openHome()
	if err != nil {
		return nil, err
	}
	return h.names()
}

// each shows all apps that were created here, or those with the given names, with what this host knows of them. An app
// that cannot be read is named on stderr.
func (c *call) each(ctx context.Context, only []string, show func(*app, *apps.Facts)) error {
	h, err := openHome()
	if err != nil {
		return err
	}
	names, err := h.names()
	if err != nil {
		return err
	}
	for _, name := range names {
		if len(only) > 0 && !slices.Contains(only, name) {
			continue
		}
		a, err := h.find(ctx, c, name)
		var f apps.Facts
		if err == nil {
			f, err = a.onHost(ctx)
		}
		if err != nil {
			fmt.Fprintf(c.Err, "%s: %v\n", name, err)
			continue
		}
		show(a, &f)
	}
	return nil
}
