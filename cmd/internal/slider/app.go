package slider

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/cmd/internal/apps"
	"github.com/muster-agent/muster/cmd/internal/flags"
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/exit"
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
	old    bool   // it lies where an earlier muster kept it: nothing there is changed while its run goes on
	record record

	stays string // why an old one cannot be moved; empty: it can
	word  string // of YARN, for one that is there: its state, once it was asked

	unheard error // why the registry of one on YARN has said nothing; nil: it has
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

// oldWork was the work folder in the folder of an app.
const oldWork = "work"

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

// lookup is where this app is asked about. Before it is made there is no record.
func (a *app) lookup() apps.Lookup {
	at, _ := registry.ParseAddress(a.record.Run.Registry) // create has checked it; empty: one of the run's own
	if a.record.Yarn != nil {
		return apps.Lookup{State: apps.NoState, Address: at, Named: true, Warn: a.Err}
	}
	return apps.Lookup{State: a.stateDir(a.record.Run.StateDir), Address: at, Named: true, Warn: a.Err}
}

// runs tells whether the app has a run that is not over.
func (a *app) runs(f *apps.Facts) bool {
	if a.record.Yarn != nil {
		return isLive(a.word)
	}
	return f.Local != nil && (f.Living() || f.Result == nil && status.ProcessLives(f.Local.Pid))
}

// onHost is what this host knows of the app's run, or YARN of one that is there. A run of that name in another work
// folder is not the app's.
func (a *app) onHost(ctx context.Context) (apps.Facts, error) {
	if a.record.Yarn != nil {
		return a.standing(ctx)
	}
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
	l, found, err := choices.Read(ctx, filepath.Join(a.kept(), a.record.Definition))
	if err != nil {
		return appdef.App{}, err
	}
	defer l.Close()
	_, wrong := withoutEmpty(found)
	return l.App, exit.OfProblems(wrong)
}

// mayChange refuses to change an app whose run began before it could be moved from where an earlier muster kept it.
func (a *app) mayChange() error {
	if !a.old || a.stays != "" {
		return nil
	}
	return exit.With(exit.Held, fmt.Errorf("%s runs since before the last update of muster: muster slider stop %s and "+
		"start %s first, muster flex %s changes the run that goes on", a.name, a.name, a.name, a.name))
}
