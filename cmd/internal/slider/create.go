package slider

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/muster-agent/muster/cmd/internal/console"
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/status"
)

// create makes an app and starts it; build makes it only.
func create(ctx context.Context, c *call) error {
	name, err := c.name()
	if err != nil {
		return err
	}
	if _, err := c.wait(); err != nil {
		return err
	}
	h, err := openHome()
	if err != nil {
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
	if err := a.make(ctx); err != nil {
		return err
	}
	if c.verb == "build" {
		fmt.Fprintf(c.Out, "%s: built in %s; muster slider start %s runs it\n", name, a.dir, name)
		return nil
	}
	return a.start(ctx, lock)
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
	if runs(&facts) {
		return exit.With(exit.Held,
			fmt.Errorf("%s runs already, started by other means: muster status %s says more", a.name, a.name))
	}
	return nil
}

// make fills a folder beside the app's, checks the whole, and renames it: the app is there whole or not at all.
func (a *app) make(ctx context.Context) error {
	dir, err := a.home.scratch(a.name)
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }() // the next create removes it too
	now := status.Stamp(time.Now())
	a.record = record{Version: 1, App: a.name, Created: now}
	a.record.Run.StateDir = string(a.stateDir(""))
	kept := filepath.Join(dir, keptIn)
	if err := a.record.fill(ctx, kept, a.call, now); err != nil {
		return err
	}
	if err := a.record.check(ctx, a.Streams, kept); err != nil {
		return err
	}
	if err := errors.Join(a.record.write(kept), os.Chmod(dir, 0o755)); err != nil { // components may be of other users
		return exit.With(exit.Forbidden, err)
	}
	return exit.With(exit.Forbidden, os.Rename(dir, a.dir))
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
	facts, err := a.lookup().OnHost(ctx, a.name)
	if err != nil {
		return err
	}
	next := a.record
	next.Set, next.Instances = slices.Clone(next.Set), slices.Clone(next.Instances)
	err = next.fill(ctx, a.kept(), c, status.Stamp(time.Now()))
	if err == nil {
		err = next.check(ctx, c.Streams, a.kept())
	}
	if err == nil {
		err = exit.With(exit.Forbidden, next.write(a.kept()))
	}
	if err != nil {
		return errors.Join(err, os.RemoveAll(filepath.Join(a.kept(), next.revision())))
	}
	when := "holds from its next start on"
	if runs(&facts) {
		when = fmt.Sprintf("what runs stays as it is; muster slider stop %s and start %s bring the new one",
			a.name, a.name)
	}
	fmt.Fprintf(c.Out, "%s: updated; %s\n", a.name, when)
	return nil
}

// revision is the folder of the newest definition.
func (r *record) revision() string { return filepath.Join(definitions, strconv.Itoa(r.Revision)) }

// tidy removes the revisions that the record names no more.
func (r *record) tidy(dir string) error {
	at := filepath.Join(dir, definitions)
	entries, err := os.ReadDir(at)
	if err != nil {
		return err
	}
	for _, e := range entries {
		named := slices.ContainsFunc([]string{r.Definition, r.Template, r.Resources}, func(part string) bool {
			return strings.HasPrefix(part, filepath.Join(definitions, e.Name())+"/")
		})
		if !named {
			err = errors.Join(err, os.RemoveAll(filepath.Join(at, e.Name())))
		}
	}
	return err
}

// fill copies what the command line names into dir as the next revision; what is not given stays.
func (r *record) fill(ctx context.Context, dir string, c *call, now time.Time) error {
	r.Revision++
	r.Updated = now
	if err := os.MkdirAll(filepath.Join(dir, r.revision()), 0o755); err != nil {
		return exit.With(exit.Forbidden, err)
	}
	if err := r.fillPackage(ctx, dir, c); err != nil {
		return err
	}
	for option, part := range map[string]*string{"--template": &r.Template, "--resources": &r.Resources} {
		if !c.has(option) {
			continue
		}
		*part = filepath.Join(r.revision(), strings.TrimLeft(option, "-"), filepath.Base(c.one(option)))
		if err := copyDocument(c.one(option), filepath.Join(dir, *part)); err != nil {
			return err
		}
	}
	set, err := c.settings()
	if err != nil {
		return err
	}
	r.Set = append(r.Set, set...)
	for _, pair := range c.given["--component"] {
		r.Instances = append(r.Instances, pair[0]+"="+pair[1])
	}
	r.Run.take(c)
	return nil
}

// settings are --option and its like as `muster run --set` takes them.
func (c *call) settings() ([]string, error) {
	var set []string
	var errs []error
	add := func(option, level, key, value string) {
		switch {
		case strings.Contains(level, ":"):
			errs = append(errs,
				exit.Usagef("slider %s: %s: component %q: want one without a colon", c.verb, option, level))
		case key == "" || strings.Contains(key, "="):
			errs = append(errs, exit.Usagef("slider %s: %s: key %q: want one without =", c.verb, option, key))
		default:
			set = append(set, level+":"+key+"="+value)
		}
	}
	for _, option := range []string{"--option", "--resopt"} {
		for _, w := range c.given[option] {
			add(option, "global", w[0], w[1])
		}
	}
	for _, option := range []string{"--compopt", "--rescompopt"} {
		for _, w := range c.given[option] {
			add(option, w[0], w[1], w[2])
		}
	}
	for _, w := range c.given["--addon"] {
		add("--addon", "global", "application.addon."+w[0], w[1])
	}
	for option, name := range map[string]string{"--zkhosts": "ZK_HOST", "--zkpath": "DEFAULT_ZK_PATH"} {
		if c.has(option) {
			set = append(set, name+"="+c.one(option))
		}
	}
	return set, errors.Join(errs...)
}

// check names all that is wrong in the definition, as muster validate does.
func (r *record) check(ctx context.Context, s console.Streams, dir string) error {
	if r.Run.Registry != "" {
		if _, err := registry.ParseAddress(r.Run.Registry); err != nil {
			return exit.With(exit.Usage, err)
		}
	}
	rules, err := r.Run.policy()
	if err != nil {
		return err
	}
	f := r.appFlags(dir)
	f.Policy = &rules
	l, found, err := f.Validate(ctx, filepath.Join(dir, r.Definition))
	if err != nil {
		return err
	}
	defer l.Close()
	found.Warnings().Print(s.Err)
	return exit.OfProblems(found)
}
