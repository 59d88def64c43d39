package slider

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/cmd/internal/apps"
	"github.com/muster-agent/muster/cmd/internal/flags"
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/hostlock"
	"github.com/muster-agent/muster/shim/status"
)

// home is the folder of all work folders that nobody has chosen another place for.
type home string

func openHome() (home, error) {
	dir, err := status.DefaultWorkDir("slider")
	return home(flags.Absolute(filepath.Dir(dir))), exit.With(exit.Forbidden, err)
}

// app is an app that create or build made.
type app struct {
	*call
	home   home
	name   string
	dir    string // of the app: its work folder, unless old
	old    bool   // it lies where an earlier muster kept it, and its run goes on: nothing there is changed
	record record
}

func (h home) app(c *call, name string) *app {
	return &app{call: c, home: h, name: name, dir: filepath.Join(string(h), name)}
}

// kept is the folder of the record, which the record's paths begin in.
func (a *app) kept() string {
	if a.old {
		return a.dir
	}
	return filepath.Join(a.dir, keptIn)
}

// work is the work folder of the app's runs.
func (a *app) work() string {
	if a.old {
		return filepath.Join(a.dir, oldWork)
	}
	return a.dir
}

func (a *app) read() (err error) {
	a.record, err = readRecord(a.name, a.dir, a.kept())
	return err
}

// open finds the app that the command line names.
func (c *call) open(ctx context.Context) (*app, error) {
	name, err := c.name()
	if err != nil {
		return nil, err
	}
	h, err := openHome()
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
	name, err := c.name()
	if err != nil {
		return nil, nil, err
	}
	h, err := openHome()
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

// noApp says that no app of this name was created here.
type noApp string

func (name noApp) Error() string {
	return fmt.Sprintf("no app %q that was created here; muster slider list lists them, muster ps what else runs",
		string(name))
}

// opened reads an app that lies in its work folder.
func (h home) opened(c *call, name string) (*app, error) {
	a := h.app(c, name)
	err := a.read()
	if errors.Is(err, fs.ErrNotExist) {
		return nil, exit.With(exit.Usage, noApp(name))
	}
	return a, err
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

// scratch makes the folder that a new app is filled in, and removes those that a killed command left. The app is
// locked.
func (h home) scratch(name string) (string, error) {
	if err := os.MkdirAll(string(h), 0o755); err != nil {
		return "", exit.With(exit.Forbidden, err)
	}
	entries, err := os.ReadDir(string(h))
	if err != nil {
		return "", exit.With(exit.Forbidden, err)
	}
	prefix := "." + name + "+" // no name has a +
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), prefix) {
			if err := os.RemoveAll(filepath.Join(string(h), e.Name())); err != nil {
				return "", exit.With(exit.Forbidden, err)
			}
		}
	}
	dir, err := os.MkdirTemp(string(h), prefix)
	return dir, exit.With(exit.Forbidden, err)
}

// lookup is where this app is asked about. Before it is made there is no record.
func (a *app) lookup() apps.Lookup {
	at, _ := registry.ParseAddress(a.record.Run.Registry) // create has checked it; empty: one of the run's own
	return apps.Lookup{State: a.stateDir(a.record.Run.StateDir), Address: at, Named: true, Warn: a.Err}
}

// runs tells whether the app has a run on this host that is not over.
func runs(f *apps.Facts) bool {
	return f.Local != nil && (f.Living() || f.Result == nil && status.ProcessLives(f.Local.Pid))
}

// onHost is what this host knows of the app's run. A run of that name in another work folder is not the app's.
func (a *app) onHost(ctx context.Context) (apps.Facts, error) {
	f, err := a.lookup().OnHost(ctx, a.name)
	if err != nil || f.Local == nil || filepath.Clean(f.Local.WorkDir) != a.work() {
		return apps.Facts{ID: a.name}, err
	}
	return f, nil
}

// facts are onHost, and what the registry knows.
func (a *app) facts(ctx context.Context) (apps.Facts, error) {
	f, err := a.onHost(ctx)
	if err != nil || f.Local == nil {
		return f, err
	}
	return a.lookup().App(ctx, a.name)
}

// definition is the kept App.
func (a *app) definition(ctx context.Context) (appdef.App, error) {
	choices := a.record.appFlags(a.kept())
	// create and update have printed its warnings.
	l, err := choices.Load(ctx, filepath.Join(a.kept(), a.record.Definition), io.Discard)
	if err != nil {
		return appdef.App{}, err
	}
	defer l.Close()
	return l.App, nil
}

// mayChange refuses to change an app that lies where an earlier muster kept it.
func (a *app) mayChange() error {
	if !a.old {
		return nil
	}
	return exit.With(exit.Held, fmt.Errorf("%s runs since before the last update of muster: muster slider stop %s and "+
		"start %s first, muster flex %s changes the run that goes on", a.name, a.name, a.name, a.name))
}
