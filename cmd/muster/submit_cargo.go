package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/appdef/hbox"
	"github.com/muster-agent/muster/cmd/internal/console"
	"github.com/muster-agent/muster/packages"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/openapp"
	"github.com/muster-agent/muster/shim/submit"
)

// cargo is what a run brings to the hosts.
type cargo struct {
	store   *submit.Store // nil: nothing is brought
	objects []submit.Object
	names   []string     // of the objects, in the store
	marked  []string     // what the run's mark names: those, and what the same run has brought before
	again   bool         // it has a mark already: it may be running
	folder  string       // where those lie that were made here
	app     *openapp.App // what they were made of; nil: a job of words
	lost    []string
	stays   error // what could not be taken back
}

// remove takes away what was made on this machine alone.
func (c *cargo) remove() {
	if c.app != nil {
		c.app.Close()
	}
	_ = os.RemoveAll(c.folder) // a temporary folder stays at worst
}

func newCargo() (*cargo, error) {
	folder, err := os.MkdirTemp("", "muster-submit-")
	if err != nil {
		return nil, exit.With(exit.Internal, fmt.Errorf("submit: %w", err))
	}
	return &cargo{folder: folder}, nil
}

// submitApp has an APP run.
func (f *submitFlags) submitApp(ctx context.Context, s console.Streams, launcher, ref string) error {
	return f.bring(ctx, s, launcher, func(ctx context.Context, s console.Streams, c *cargo) (appdef.App, error) {
		return f.loadApp(ctx, s, launcher, c, ref)
	})
}

func (f *submitFlags) loadApp(ctx context.Context, s console.Streams, launcher string, c *cargo, ref string) (appdef.App, error) {
	a := &f.job.app
	a.Hadoop, a.Progress = f.job.filesystem.Hadoop.Login, s.Err
	l, found, err := a.Read(ctx, ref)
	if err != nil {
		return appdef.App{}, err
	}
	c.app = l
	found.Warnings().Print(s.Err)
	if bad := exit.OfProblems(found); bad != nil {
		return appdef.App{}, bad
	}
	return l.App, f.choose(launcher, c, l)
}

// stow decides what goes into the store, and where the hosts will find it.
func (f *submitFlags) stow(ctx context.Context, s console.Streams, launcher string, app appdef.App, c *cargo) (err error) {
	o := &f.job.options
	bring := o.Binary == "" && !clientOf(launcher).InImage
	if o.Binary == "" {
		o.Binary = podBinary
	}
	if bring {
		if o.Binary, err = os.Executable(); err != nil {
			return fmt.Errorf("submit: %w", err)
		}
	}
	url := cmp.Or(f.store, app.Settings.Store)
	if url == "" && clientOf(launcher).OneHost { // this very host
		bring = false
	}
	if err := f.openStore(ctx, s, c, launcher, url, bring); err != nil {
		return err
	}
	return f.place(ctx, c, bring)
}

// choose says what of an APP is brought: what lies on this machine, with the documents in it that flags replace.
func (f *submitFlags) choose(launcher string, c *cargo, l *openapp.App) error {
	a := &f.job.app
	if f.job.options.App != "" { // somebody has brought it
		return nil
	}
	other := a.Template != "" || a.Resources != ""
	stored := cmp.Or(f.store, l.App.Settings.Store) != ""
	switch {
	case !other && (l.URL != "" || strings.HasPrefix(l.Ref, "catalog:")):
		f.job.options.App = l.Ref
		return nil
	case clientOf(launcher).OneHost && !stored && l.Ref != openapp.Stdin:
		f.job.options.App = l.Ref
		return nil
	case !other && l.URL == "" && l.Job == nil && !l.Package.Folder:
		c.objects = append(c.objects, submit.Object{Name: filepath.Base(l.Package.Path), File: l.Package.Path})
		return nil
	}
	dir := filepath.Join(c.folder, "package")
	if err := errors.Join(os.Mkdir(dir, 0o755), packages.Copy(l.Package.FS, dir)); err != nil {
		return fmt.Errorf("submit: %w", err)
	}
	for name, from := range map[string]string{"appConfig.json": a.Template, "resources.json": a.Resources} {
		if from == "" {
			continue
		}
		text, err := os.ReadFile(from)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), text, 0o644)
		}
		if err != nil {
			return fmt.Errorf("submit: %w", err)
		}
	}
	a.Template, a.Resources = "", "" // they are in the package now
	return c.pack(dir, l.App.Name)
}

// submitWords has a job of hbox-submit's words run.
func (f *submitFlags) submitWords(ctx context.Context, s console.Streams, launcher string, words []string) error {
	job, err := f.job.words(s, "submit", words)
	if err != nil {
		return err
	}
	return f.submitJob(ctx, s, launcher, job)
}

// submitJob has a job of HBox's run, as a package that is made of it.
func (f *submitFlags) submitJob(ctx context.Context, s console.Streams, launcher string, job hbox.Submission) error {
	return f.bring(ctx, s, launcher, func(_ context.Context, _ console.Streams, c *cargo) (appdef.App, error) { return f.loadJob(c, job) })
}

func (f *submitFlags) loadJob(c *cargo, job hbox.Submission) (appdef.App, error) {
	lost, err := f.job.carried(job)
	if err != nil {
		return appdef.App{}, err
	}
	c.lost = append(c.lost, lost...)
	if f.job.options.App != "" {
		return job.App, nil
	}
	dir, _, err := hboxPackage(c.folder, job) // it goes with the folder
	if err != nil {
		return appdef.App{}, err
	}
	return job.App, c.pack(dir, job.App.Name)
}

// pack makes an archive of a folder to be brought.
func (c *cargo) pack(dir, name string) error {
	name = appdef.NameOf(name, "") + ".zip"
	file := filepath.Join(c.folder, name)
	if _, err := packages.Pack(dir, file, packages.PackOptions{}); err != nil {
		return exit.With(exit.Definition, fmt.Errorf("submit: %w", err))
	}
	c.objects = append(c.objects, submit.Object{Name: name, File: file})
	return nil
}

// openStore finds the store where something is to be put into it.
func (f *submitFlags) openStore(ctx context.Context, s console.Streams, c *cargo, launcher, url string, binary bool) error {
	if len(c.objects) == 0 && !binary {
		return nil
	}
	if url == "" {
		var what []string
		if binary {
			what = append(what, "muster itself (or --binary says where it is on each host)")
		}
		for _, o := range c.objects {
			what = append(what, o.Name+" (or --app says where the agents find it)")
		}
		return exit.With(exit.Definition, fmt.Errorf("submit: no store: --store, or muster.store in the definition, says where %s put for the hosts: %s",
			map[bool]string{true: "this is", false: "these are"}[len(what) == 1], strings.Join(what, ", ")))
	}
	if err := errors.Join(f.job.filesystem.Hadoop.Check(), f.storeFlags(url)); err != nil {
		return err
	}
	store, err := submit.Open(ctx, url, f.job.filesystem.Hadoop.Fetching(s.Err))
	if err != nil {
		return exit.Usagef("submit: %w", err)
	}
	if f.storeAs != "" {
		store.SeenAs(f.storeAs)
	}
	if binary && !store.Local() && !clientOf(launcher).FetchesPrograms && !store.Web() {
		return exit.With(exit.Definition, fmt.Errorf("submit: %s starts no program from %s: --binary says where muster is on each host, or --store names a folder that all of them see", launcher, url))
	}
	if clientOf(launcher).InImage && store.Local() {
		return exit.With(exit.Definition, fmt.Errorf("submit: pods do not see the folder %s: --store-as says the URL of a web server that shows it, or --store names one on HDFS", url))
	}
	c.store = store
	return nil
}

// place says where the hosts will find what is brought.
func (f *submitFlags) place(ctx context.Context, c *cargo, binary bool) error {
	if c.store == nil {
		return nil
	}
	o := &f.job.options
	if binary {
		c.objects = append(c.objects, submit.Object{Name: "muster", File: o.Binary, Executable: true})
	}
	for i, object := range c.objects {
		name, err := submit.NameOf(ctx, object)
		if err != nil {
			return fmt.Errorf("submit: %w", err)
		}
		c.names = append(c.names, name)
		switch {
		case binary && i == len(c.objects)-1 && c.store.Local():
			o.Binary = c.store.Path(name)
		case binary && i == len(c.objects)-1:
			o.Binary = c.store.URL(name)
		default:
			o.App = c.store.URL(name) + openapp.Pin + name[:64]
		}
	}
	return nil
}

// hold marks the store and puts everything into it.
func (c *cargo) hold(ctx context.Context, m submit.Mark) error {
	if c.store == nil {
		return nil
	}
	marks, err := c.store.Marks(ctx)
	if err != nil {
		return exit.Default(openapp.FetchCode(err), fmt.Errorf("submit: %w", err))
	}
	if i := slices.IndexFunc(marks, func(one submit.Mark) bool { return one.App == m.App && one.Run == m.Run }); i >= 0 {
		c.again, c.marked = true, marks[i].Objects
	}
	c.marked = append(c.marked, c.names...)
	slices.Sort(c.marked)
	c.marked = slices.Compact(c.marked)
	m.Objects = c.marked
	if err := c.store.Hold(ctx, m); err != nil {
		return exit.Default(openapp.FetchCode(err), fmt.Errorf("submit: %w", err))
	}
	for i, object := range c.objects {
		if _, err := c.store.Put(ctx, c.names[i], object); err != nil {
			err = fmt.Errorf("submit: store: %w", err)
			return errors.Join(exit.Default(openapp.FetchCode(err), err), c.takeBack(ctx, m.App, m.Run))
		}
	}
	return nil
}

// takeBack releases what a job was brought that did not start. Where the run had a mark before, its files are those of a job
// that may be running.
func (c *cargo) takeBack(ctx context.Context, app, run string) error {
	if c.again {
		return nil
	}
	c.stays = c.release(ctx, app, run)
	return c.stays
}

// releasePatience bounds what has no other end: a NameNode may never answer.
const releasePatience = 2 * time.Minute

// release takes away what the run has brought, also when whoever waits was interrupted.
func (c *cargo) release(ctx context.Context, app, run string) error {
	if c.store == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releasePatience)
	defer cancel()
	if err := c.store.Release(ctx, app, run); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("submit: store: what was brought stays there: %w", err)
	}
	return nil
}

// objectNames is never nil.
func (c *cargo) objectNames() []string { return append([]string{}, slices.Clone(c.names)...) }
