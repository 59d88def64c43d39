package slider

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/launcher/yarn"
	"github.com/muster-agent/muster/shim/status"
)

// create makes an app and starts it; build makes it only.
func create(ctx context.Context, c *call) error {
	h, name, err := c.named()
	if err != nil {
		return err
	}
	if _, err := c.wait(); err != nil {
		return err
	}
	lock, err := h.lock(name)
	if err != nil {
		return err
	}
	defer func() { _ = lock.Release() }() // an app that runs is locked by its work folder
	a := h.app(c, name)
	if err := a.mayBeMade(ctx); err != nil {
		return err
	}
	empty, err := a.make(ctx)
	if err != nil {
		return err
	}
	if empty {
		fmt.Fprintf(c.Out, "%s: built in %s; none of its components has an instance: %s\n", name, a.dir,
			whatStarts(name))
		return nil
	}
	if c.verb == "build" {
		fmt.Fprintf(c.Out, "%s: built in %s; muster slider start %s runs it\n", name, a.dir, name)
		return nil
	}
	return a.start(ctx, lock)
}

// whatStarts is how to start an app without instances.
func whatStarts(name string) string {
	return fmt.Sprintf("muster slider flex %s --component COMPONENT COUNT and muster slider start %s run it", name,
		name)
}

// mayBeMade refuses a name that is taken: by an app, by a folder that is none, by a run of another launcher.
func (a *app) mayBeMade(ctx context.Context) error {
	switch _, err := a.home.adopt(ctx, a.call, a.name); {
	case err == nil:
		return exit.With(exit.Held, fmt.Errorf("%s exists already: muster slider start %s runs it, "+
			"update changes it, destroy --force removes it", a.name, a.name))
	case !errors.As(err, new(noApp)):
		return err
	}
	if _, err := os.Lstat(a.dir); err == nil {
		return exit.With(exit.Held, fmt.Errorf(
			"folder %s is there and is no app of muster slider: move it away, or choose another name", a.dir))
	}
	facts, err := a.lookup().OnHost(ctx, a.name)
	if err != nil {
		return err
	}
	if a.runs(&facts) {
		return exit.With(exit.Held,
			fmt.Errorf("%s runs already, started by other means: muster status %s says more", a.name, a.name))
	}
	return nil
}

// make fills a folder beside the app's, checks the whole, and renames it: the app is there whole or not at all. empty:
// it has no instance to start.
func (a *app) make(ctx context.Context) (empty bool, err error) {
	dir := filepath.Join(string(a.home), "."+a.name+"+new")                         // no name has a +
	if err := errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o755)); err != nil { // a killed command may have left it
		return false, exit.With(exit.Forbidden, err)
	}
	defer func() { _ = os.RemoveAll(dir) }() // the next create removes it too
	now := status.Stamp(time.Now())
	a.record = record{Version: 1, App: a.name, Created: now}
	a.record.Run.StateDir = string(a.stateDir(""))
	if a.record.Yarn, err = a.cluster(); err != nil {
		return false, err
	}
	if a.record.Yarn != nil && yarn.ServiceName(a.name) != a.name {
		return false, exit.Usagef("slider %s: %s: YARN takes names of lower-case letters, digits and -, a letter first",
			a.verb, a.name)
	}
	kept := filepath.Join(dir, keptIn)
	if err := a.record.fill(ctx, kept, a.call, now); err != nil {
		return false, err
	}
	if empty, err = a.record.check(ctx, a.Streams, kept); err != nil {
		return false, err
	}
	if err := a.record.write(kept); err != nil {
		return false, exit.With(exit.Forbidden, err)
	}
	return empty, exit.With(exit.Forbidden, os.Rename(dir, a.dir))
}

// update changes the definition, or how it is run, from the next start on.
func update(ctx context.Context, c *call) error {
	a, lock, err := c.openLocked(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = lock.Release() }() // this process ends
	if err := a.mayChange(); err != nil {
		return err
	}
	facts, err := a.onHost(ctx)
	if err != nil {
		return err
	}
	next := a.record
	next.Set, next.Instances = slices.Clone(next.Set), slices.Clone(next.Instances)
	err = next.fill(ctx, a.kept(), c, status.Stamp(time.Now()))
	if err == nil && a.runs(&facts) {
		err = a.record.mayMove(&next)
	}
	if err == nil {
		_, err = next.check(ctx, c.Streams, a.kept())
	}
	if err == nil {
		err = exit.With(exit.Forbidden, next.write(a.kept()))
	}
	if err != nil {
		return errors.Join(err, os.RemoveAll(filepath.Join(a.kept(), next.revision())))
	}
	when := "holds from its next start on"
	if a.runs(&facts) {
		when = fmt.Sprintf("what runs stays as it is; muster slider stop %s and start %s bring the new one",
			a.name, a.name)
	}
	fmt.Fprintf(c.Out, "%s: updated; %s\n", a.name, when)
	return nil
}
