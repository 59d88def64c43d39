package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/appdef/slider"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/policy"
)

// appChoices choose and change the definition of an APP.
type appChoices struct {
	template   string // appConfig file in place of the package's
	resources  string // resources file in place of the package's
	set        []string
	instances  []string
	paiVersion string // generation of PAI that a job file is read as; empty: detected
	outputUser bool   // a job file without outputDir writes to /Output/USER/JOB

	// policy says which packages may run here; nil: nothing will run.
	policy *policy.Policy
	// progress is told of a download; nil: nobody is.
	progress io.Writer
	// hadoop is how an APP on HDFS is reached.
	hadoop hadoopLogin
	// signed fetches a package's signature too, if it has one.
	signed bool
}

// loaded is an APP as given on the command line.
type loaded struct {
	appdef.App
	source
	vars map[string]string // client variables of --set: ZK_HOST=…
}

// load opens APP, reads and validates it. Problems come as one error: exit code 65, or 64 where the
// command line is at fault; an archive or folder that cannot be opened likewise. Warnings go to warn.
// The caller closes what it got.
func (f *appChoices) load(ctx context.Context, ref string, warn io.Writer) (*loaded, error) {
	if f.progress == nil {
		f.progress = warn
	}
	l, found, err := f.read(ctx, ref)
	if err != nil {
		return nil, err
	}
	printWarnings(warn, found)
	if bad := asError(found); bad != nil {
		l.close()
		return nil, bad
	}
	return l, nil
}

// read is load that hands all problems back as values; the App is whole when none of them is an error.
func (f *appChoices) read(ctx context.Context, ref string) (*loaded, appdef.Problems, error) {
	if v := f.paiVersion; v != "" && !slices.Contains([]string{appdef.PAI05, appdef.PAI014, appdef.PAI1}, v) {
		return nil, nil, exit.Usagef("--pai-version %q: want 0.5, 0.14 or 1", v)
	}
	template, err := readOptional(f.template)
	if err != nil {
		return nil, nil, err
	}
	resources, err := readOptional(f.resources)
	if err != nil {
		return nil, nil, err
	}
	from, err := f.open(ctx, ref)
	if err != nil {
		return nil, nil, err
	}
	if data := jobIn(from); data != nil {
		app, found, err := f.loadJob(from, data)
		if err != nil {
			from.close()
			return nil, nil, err
		}
		return &loaded{App: app, source: from, vars: app.Vars}, found, nil
	}
	app, found := slider.Load(from.pkg.FS, slider.Options{
		Template: template, Resources: resources, Set: f.set, Instances: f.instances, Name: from.pkg.Name,
	})
	return &loaded{App: app, source: from, vars: app.Vars}, found, nil
}

// clientVars are the names that only a client knows: from the environment, over them the command line's.
func (l *loaded) clientVars() map[string]string {
	vars := map[string]string{}
	for _, name := range appdef.ClientNames() {
		if v, ok := os.LookupEnv(name); ok {
			vars[name] = v
		}
	}
	maps.Copy(vars, l.vars)
	return vars
}

// asError is nil when no problem is an error; the exit code tells a definition's fault from the
// command line's.
func asError(found appdef.Problems) error {
	bad := found.Errors()
	switch {
	case len(bad) == 0:
		return nil
	case bad.Usage():
		return exit.With(exit.Usage, bad)
	}
	return bad
}

func printWarnings(to io.Writer, found appdef.Problems) {
	for _, p := range found.Warnings() {
		fmt.Fprintln(to, "warning: "+p.String())
	}
}

// readOptional reads a file that a flag names. Without a name there is none.
func readOptional(path string) (*slider.File, error) {
	if path == "" {
		return nil, nil // not given is an answer
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, exit.With(exit.Usage, fmt.Errorf("read %s: %w", path, err))
	}
	return &slider.File{Name: filepath.Base(path), Data: text}, nil
}
