package slider

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/muster-agent/muster/cmd/internal/detach"
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/fault"
	"github.com/muster-agent/muster/shim/hostlock"
	"github.com/muster-agent/muster/shim/wait"
	"github.com/muster-agent/muster/shim/workdir"
)

// destroy removes an app: what the registry and this host remember of it, and its folder with logs and checkpoints.
func destroy(ctx context.Context, c *call) error {
	a, lock, err := c.openLocked(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = lock.Release() }() // this process ends
	facts, err := a.onHost(ctx)
	if err != nil {
		return err
	}
	switch {
	case a.runs(&facts) && !c.has("--force"):
		return exit.With(exit.Held, fmt.Errorf(
			"%s runs: muster slider stop %s first, or destroy --force, which stops it", a.name, a.name))
	case !c.has("--force"):
		return exit.Usagef(
			"slider destroy: would remove %s for good, with its logs and checkpoints; --force does it", a.dir)
	case a.stays != "":
		return exit.With(exit.Held, fmt.Errorf("%s: %s: undo that first, or remove %s by hand", a.name, a.stays, a.dir))
	case a.runs(&facts):
		if err := a.end(ctx, true); err != nil {
			return err
		}
	}
	work, err := a.ownWork(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = work.Release() }() // this process ends
	if a.old {
		moved, err := a.move()
		if err != nil {
			return err
		}
		a = moved
	}
	if err := a.forget(ctx); err != nil {
		return err
	}
	others, err := a.remove()
	if err != nil {
		return exit.With(exit.Forbidden, err)
	}
	if len(others) > 0 {
		fmt.Fprintf(c.Out, "%s: destroyed; left, for they are not muster's: %s\n", a.name, strings.Join(others, ", "))
		return nil
	}
	fmt.Fprintf(c.Out, "%s: destroyed, with %s\n", a.name, a.dir)
	return nil
}

// ownWork takes the work folder as a run would. A run that has just ended may have it a moment longer.
func (a *app) ownWork(ctx context.Context) (lock *hostlock.Lock, err error) {
	ctx, cancel := context.WithTimeout(ctx, workdir.TakeoverPatience)
	defer cancel()
	wait.Until(ctx, func() bool {
		lock, err = workdir.LockRun(a.work())
		return !fault.Is(err, registry.ClassHost)
	})
	if fault.Is(err, registry.ClassHost) {
		err = exit.With(exit.Held, err)
	}
	return lock, err
}

// forget removes what the run left in its registry and in this host's state. A run of the same name in another folder
// is not this app's, and nothing of it is removed.
func (a *app) forget(ctx context.Context) error {
	if a.record.Yarn != nil {
		return a.forgetOnYarn(ctx)
	}
	k := a.lookup()
	facts, err := k.OnHost(ctx, a.name)
	if err != nil {
		return err
	}
	switch {
	case facts.Local != nil && filepath.Clean(facts.Local.WorkDir) != a.work():
		return nil
	case facts.Local == nil && a.record.Run.Registry == "":
		return nil
	}
	err = k.Forget(ctx, a.name)
	if facts.Local == nil && exit.CodeOf(err) == exit.Usage { // the registry does not know it either
		return nil
	}
	return err
}

// remove takes the app's folder away: what a run and Slider's commands made there, and nothing else. Other files stay,
// and are named. The record goes last, so that an interrupted removal can be done again.
func (a *app) remove() (others []string, err error) {
	if below, err := mountsBelow(a.dir); err != nil || len(below) > 0 {
		return nil, cmp.Or(err,
			fmt.Errorf("remove %s: mounted below it: %s; unmount it first", a.dir, strings.Join(below, ", ")))
	}
	home, err := os.OpenRoot(filepath.Dir(a.dir))
	if err != nil {
		return nil, err
	}
	defer home.Close()
	own, err := home.OpenRoot(a.name)
	if err != nil {
		return nil, err
	}
	defer own.Close()
	parts, err := workdir.Made(a.dir)
	if err != nil {
		return nil, err
	}
	for _, part := range append(parts, detach.Out, detach.Err, filepath.Join(keptIn, definitions), keptIn) {
		if err := own.RemoveAll(part); err != nil {
			return nil, fmt.Errorf("remove %s: %w", filepath.Join(a.dir, part), err)
		}
	}
	err = home.Remove(a.name)
	if !errors.Is(err, unix.ENOTEMPTY) && !errors.Is(err, unix.EEXIST) {
		return nil, err
	}
	entries, err := os.ReadDir(a.dir)
	for _, e := range entries {
		others = append(others, filepath.Join(a.dir, e.Name()))
	}
	return others, err
}
