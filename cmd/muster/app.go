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

// appFlags choose and change the definition; every verb that takes APP has them.
type appFlags struct {
	template  string
	resources string
	set       []string
	instances []string
	job       jobFlags

	// policy says whether the package may run here; nil: nothing will run.
	policy *policy.Policy
	// progress hears of a download; nil: nobody does.
	progress io.Writer
	// ends breaks a download off; nil: nothing does.
	ends context.Context
	// hadoop is how an APP on HDFS is reached; the verb's own flags, where it has them.
	hadoop hadoopFlags
	// signed has a package's signature fetched with it where there is one.
	signed bool
}

func (f *appFlags) register(flags flagSet) {
	flags.StringVar(&f.template, "template", "", "appConfig `FILE` in place of the package's")
	flags.StringVar(&f.resources, "resources", "", "resources `FILE` in place of the package's")
	flags.StringArrayVar(&f.set, "set", nil, "[COMPONENT|global:]KEY=VALUE: change one setting; repeatable, the last wins")
	flags.StringArrayVar(&f.instances, "instances", nil, "`COMPONENT=N,…`: how many of each; components not named keep theirs")
	f.job.register(flags)
}

// args are the same choices as arguments for an agent; paths become absolute.
func (f *appFlags) args() ([]string, error) {
	var out []string
	for flag, path := range map[string]string{"--template": f.template, "--resources": f.resources} {
		if path == "" {
			continue
		}
		abs, err := filepath.Abs(path)
		if err != nil {
			return nil, err
		}
		out = append(out, flag, abs)
	}
	for _, s := range f.set {
		out = append(out, "--set", s)
	}
	for _, s := range f.instances {
		out = append(out, "--instances", s)
	}
	return append(out, f.job.args()...), nil
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
func (f *appFlags) load(ref string, warn io.Writer) (*loaded, error) {
	if f.progress == nil {
		f.progress = warn
	}
	l, found, err := f.read(ref)
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
func (f *appFlags) read(ref string) (*loaded, appdef.Problems, error) {
	if v := f.job.paiVersion; v != "" && !slices.Contains([]string{appdef.PAI05, appdef.PAI014, appdef.PAI1}, v) {
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
	from, err := f.open(ref)
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
