package openapp

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/appdef/slider"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/hadoop"
	"github.com/muster-agent/muster/shim/plan"
	"github.com/muster-agent/muster/shim/policy"
	"github.com/muster-agent/muster/shim/store"
)

// Choices choose and change the definition of an APP.
type Choices struct {
	Template   string // appConfig file in place of the package's
	Resources  string // resources file in place of the package's
	Set        []string
	Instances  []string
	PAIVersion string // version of OpenPAI that a job file is read as; empty: what the file shows
	OutputUser bool   // a job file without outputDir writes to /Output/USER/JOB

	// Policy is the host's rules for packages; nil: nothing will run here.
	Policy *policy.Policy
	// Progress gets the progress of a download; may be nil.
	Progress io.Writer
	// Hadoop is how an APP on HDFS is reached.
	Hadoop hadoop.Login
	// Signed fetches a package's signature too, if it has one.
	Signed bool
}

// App is an APP as given on the command line.
type App struct {
	appdef.App
	Source
	Vars map[string]string // client variables of --set: ZK_HOST=…
}

// Load opens APP, reads and validates it. Problems of the definition, and an APP that cannot be opened, are one error
// with exit code 65; a mistake of the command line has 64. Warnings go to warn. The caller closes the App.
func (f *Choices) Load(ctx context.Context, ref string, warn io.Writer) (*App, error) {
	if f.Progress == nil {
		f.Progress = warn
	}
	l, found, err := f.Read(ctx, ref)
	if err != nil {
		return nil, err
	}
	found.Warnings().Print(warn)
	if bad := exit.OfProblems(found); bad != nil {
		l.Close()
		return nil, bad
	}
	if note := l.Note(); note != "" {
		fmt.Fprintln(warn, note)
	}
	return l, nil
}

// Note is what a user should know about how the definition was read, on one line; empty if there is nothing.
func (l *App) Note() string {
	pai := l.Settings.PAI
	if pai.VersionWhy == "" {
		return ""
	}
	return fmt.Sprintf("note: %s is read as a job of PAI %s: %s; --pai-version says otherwise", l.Package.Name,
		pai.Version, pai.VersionWhy)
}

// Read is Load that returns all problems as values; the App is complete if none of them is an error.
func (f *Choices) Read(ctx context.Context, ref string) (*App, appdef.Problems, error) {
	if v := f.PAIVersion; v != "" && !slices.Contains([]string{appdef.PAI05, appdef.PAI014, appdef.PAI1}, v) {
		return nil, nil, exit.Usagef("--pai-version %q: want 0.5, 0.14 or 1", v)
	}
	template, err := ReadDocument(f.Template)
	if err != nil {
		return nil, nil, err
	}
	resources, err := ReadDocument(f.Resources)
	if err != nil {
		return nil, nil, err
	}
	from, err := f.Open(ctx, ref)
	if err != nil {
		return nil, nil, err
	}
	app, found, err := f.define(from, template, resources)
	if err != nil {
		from.Close()
		return nil, nil, err
	}
	return &App{App: app, Source: from, Vars: app.Vars}, found, nil
}

// define reads the definition of an opened package, if the policy admits what is changed and what it names.
func (f *Choices) define(from Source, template, resources *slider.File) (app appdef.App, found appdef.Problems,
	err error,
) {
	if err := f.admitChoices(); err != nil {
		return app, nil, err
	}
	data, name, err := jobIn(from)
	if err != nil {
		return app, nil, err
	}
	if data != nil {
		if app, found, err = f.loadJob(from, data, name); err != nil {
			return app, nil, err
		}
	} else {
		app, found = slider.Load(from.Package.FS, slider.Options{
			Template: template, Resources: resources, Set: f.Set, Instances: f.Instances, Name: from.Package.Name,
		})
	}
	return app, found, f.admitDefinition(app)
}

// Validate is Read that also plans the first instance of each component, to find the problems of planning.
func (f *Choices) Validate(ctx context.Context, ref string) (*App, appdef.Problems, error) {
	l, found, err := f.Read(ctx, ref)
	if err == nil && len(found.Errors()) == 0 {
		found = append(found, plan.Check(l.App, l.ClientVars())...).Sort()
	}
	return l, found, err
}

// ClientVars are the values of names that only a client knows: from the environment, overridden by the command line.
func (l *App) ClientVars() map[string]string {
	vars := map[string]string{}
	for _, name := range appdef.ClientNames() {
		if v, ok := os.LookupEnv(name); ok {
			vars[name] = v
		}
	}
	maps.Copy(vars, l.Vars)
	return vars
}

// ReadDocument reads a file that a flag names; nothing without a name. With #sha256=HEX behind its path it must have
// that digest.
func ReadDocument(path string) (*slider.File, error) {
	if path == "" {
		return nil, nil // a missing flag is no error
	}
	path, want, _ := strings.Cut(path, Pin)
	text, err := os.ReadFile(path)
	if got := digestOf(text); err == nil && want != "" && want != got {
		return nil, exit.With(exit.Definition, fmt.Errorf("%s, which the command line names: %w", path,
			&store.DigestError{Want: want, Got: got}))
	}
	if err != nil {
		if cause, ok := errors.AsType[*fs.PathError](err); ok {
			err = cause.Err
		}
		return nil, exit.With(exit.Usage, fmt.Errorf("%s, which the command line names: %w", path, err))
	}
	return &slider.File{Name: filepath.Base(path), Data: text}, nil
}

func digestOf(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}
