package slider

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/cmd/internal/detach"
	"github.com/muster-agent/muster/cmd/internal/run"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/hostlock"
)

// start runs an app again, from its checkpoints.
func start(ctx context.Context, c *call) error {
	if _, err := c.wait(); err != nil {
		return err
	}
	a, lock, err := c.openLocked(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = lock.Release() }() // an app that runs is locked by its work folder
	facts, err := a.onHost(ctx)
	if a.record.Yarn == nil {
		facts, err = a.lookup().OnHost(ctx, a.name) // a run of this name in another folder too
	}
	if err != nil {
		return err
	}
	if a.runs(&facts) {
		return exit.With(exit.Held, fmt.Errorf("%s runs already: muster slider status %s says more", a.name, a.name))
	}
	if err := a.mayChange(); err != nil {
		return err
	}
	a.record.Run.take(c)
	empty, err := a.checkAgain(ctx, &a.record)
	if err == nil && empty {
		err = exit.With(exit.Definition, fmt.Errorf("%s: none of its components has an instance: %s", a.name,
			whatStarts(a.name)))
	}
	if err != nil {
		return err
	}
	if err := errors.Join(a.record.tidy(a.kept()), a.record.write(a.kept())); err != nil {
		return exit.With(exit.Forbidden, err)
	}
	return a.start(ctx, lock)
}

// start runs the app in the background, and returns when all instances are installed, the run is over, or --wait is.
func (a *app) start(ctx context.Context, lock *hostlock.Lock) error {
	if a.record.Yarn != nil {
		return a.submit(ctx, lock)
	}
	limit, err := a.wait()
	if err != nil {
		return err
	}
	args, err := a.runArgs()
	if err != nil {
		return err
	}
	installed, err := detach.Run{
		App: a.name, Args: args, Dir: "/", WorkDir: a.work(), Own: true, State: a.lookup().State, Limit: limit,
		Env:    slices.DeleteFunc(os.Environ(), isFlag),
		Begun:  func() { _ = lock.Release() }, // from here on the run's own folder is the lock
		Advice: "muster slider update and start try again, destroy --force removes it",
	}.Start(ctx, a.Streams)
	if !installed {
		return err
	}
	fmt.Fprintf(a.Out, "  exports  muster slider exports %s\n", a.name)
	return cmp.Or(a.writeReport(ctx), err)
}

// checkAgain is check for a command that brings no definition: the warnings were printed by the one that did.
func (a *app) checkAgain(ctx context.Context, r *record) (empty bool, err error) {
	quiet, said := a.Streams, &bytes.Buffer{}
	quiet.Err = said
	empty, err = r.check(ctx, quiet, a.kept())
	if n := bytes.Count(said.Bytes(), []byte("\n")); n > 0 {
		fmt.Fprintf(a.Err, "%s: %s of its definition, as create, build or update printed them\n", a.name,
			appdef.Counted(n, "warning"))
	}
	return empty, err
}

// isFlag tells of a variable that stands for a flag: the record has what those said.
func isFlag(variable string) bool { return strings.HasPrefix(variable, "MUSTER_AGENT_") }

// runArgs are the arguments of the app's `muster run`. What the instances write stands in their own logs, which are
// rotated; in the run's own output it would grow without end.
func (a *app) runArgs() ([]string, error) {
	r := a.record.Run
	return a.args([]string{"run"}, [][2]string{
		{"--work-dir", a.work()},
		{"--state-dir", r.StateDir},
		{"--output", run.OutputEvents},
		{"--userns", r.Userns},
		{"--host", r.Host},
	})
}

// args are the arguments of a verb that takes the app as it is kept: its own flags, those that have a value, and what
// `muster run` and `muster submit` take alike.
func (a *app) args(verb []string, own [][2]string) ([]string, error) {
	r := a.record.Run
	args := append(verb, filepath.Join(a.kept(), a.record.Definition), "--app-id", a.name,
		fmt.Sprintf("--require-limits=%t", r.Strict))
	for _, f := range append(own, [][2]string{
		{"--registry", r.Registry},
		{"--engine", r.Engine},
		{"--policy", r.Policy},
		{"--ports", r.Ports},
	}...) {
		if f[1] != "" {
			args = append(args, f[0], f[1])
		}
	}
	for _, e := range r.Env {
		args = append(args, "--env", e)
	}
	choices := a.record.appFlags(a.kept())
	more, err := choices.Args()
	return append(args, more...), err
}
