package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/cmd/internal/apps"
	"github.com/muster-agent/muster/cmd/internal/console"
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/launcher/job"
	"github.com/muster-agent/muster/shim/submit"
)

// sent is a job at its launcher, and its run in the registry.
type sent struct {
	flags    *submitFlags
	streams  console.Streams
	launcher string
	job      job.Client
	cargo    *cargo
	id       string // the launcher's
	app, run string
	registry registry.Address
	before   appStanding // of our app, before it was started
	def      appdef.App
	lost     []string
}

// start brings what the hosts need and starts the job. What was brought for one that could not be started goes.
func (r *sent) start(ctx context.Context) (err error) {
	if err := r.free(ctx); err != nil {
		return err
	}
	mark := submit.Mark{App: r.app, Run: r.run, Registry: r.registry.String(), Launcher: r.launcher, At: time.Now().UTC()}
	if err := r.cargo.hold(ctx, mark); err != nil {
		return err
	}
	if r.id, err = r.job.Start(ctx); err != nil {
		if errors.Is(err, job.ErrUnknown) {
			look, end := r.job.Hints()
			err = fmt.Errorf("submit: %w; look: %s; end it: %s; what it was brought stays", err, look, end)
			if ctx.Err() != nil {
				return exit.With(ctrlCCode, err)
			}
			return submitCode(err)
		}
		return errors.Join(submitCode(fmt.Errorf("submit: %w", err)), r.cargo.takeBack(ctx, r.app, r.run))
	}
	if ctx.Err() != nil {
		return r.undo(ctx)
	}
	if r.cargo.store != nil {
		mark.ID, mark.Objects = r.id, r.cargo.marked
		if err := r.cargo.store.Hold(ctx, mark); err != nil { // it stands there without the id
			fmt.Fprintf(r.streams.Err, "store: %v\n", err)
		}
	}
	if !r.flags.wait {
		defer func() { fmt.Fprintln(r.streams.Err, r.handles()) }()
	}
	switch {
	case r.flags.json && r.flags.wait: // the answer comes at the end
		fmt.Fprintf(r.streams.Err, "%s: %s\n", r.launcher, r.id)
	case r.flags.json:
	default:
		if _, err := fmt.Fprintln(r.streams.Out, r.id); err != nil {
			if err = r.unsaid(err); !r.flags.wait {
				return err
			}
			fmt.Fprintln(r.streams.Err, message(err))
		}
	}
	return nil
}

// handles are the commands by which the job is followed and ended without this one.
func (r *sent) handles() string {
	where := r.app + " --registry " + r.registry.String()
	follow, end := r.job.Hints()
	return "  follow it: muster status " + where + " --run " + r.run + " --wait, or " + follow + "\n" +
		"  stop it:   muster stop " + where + "; while no agent is there yet, or without a verdict, " + end
}

// unsaid is an answer that cannot be written: the launcher has the job, and its id is told where it still can be.
func (r *sent) unsaid(err error) error {
	return exit.With(exit.Internal, fmt.Errorf("submit: print: %w; the job is there: %s %s", err, r.launcher, r.id))
}

// undo ends a job that was called off while it was started. What it was brought stays where the launcher does not answer to that.
func (r *sent) undo(ctx context.Context) error {
	after := context.WithoutCancel(ctx)
	if err := r.job.Stop(after); err != nil {
		look, end := r.job.Hints()
		return exit.With(ctrlCCode, fmt.Errorf("submit: interrupted, and %s %s was started: %w; look: %s; end it: %s; what it was brought stays", r.launcher, r.id, err, look, end))
	}
	return exit.With(ctrlCCode, errors.Join(fmt.Errorf("submit: interrupted: %s ends %s, which had been started", r.launcher, r.id), r.cargo.takeBack(after, r.app, r.run)))
}

// free refuses an app that another run holds: its agents would be turned away one by one. A registry that does not answer
// from here may answer there.
func (r *sent) free(ctx context.Context) error {
	st, err := r.lookup().Status(ctx, r.registry, r.app)
	r.before = appStanding{st, err}
	switch {
	case errors.Is(err, registry.ErrNoApp):
		return nil
	case err != nil:
		if r.flags.wait {
			return apps.RegistryError(r.registry, err)
		}
		fmt.Fprintf(r.streams.Err, "registry %s does not answer from here: %v\n", r.registry, err)
		return nil
	case st.Verdict == nil && st.Live > 0 && !r.ours(st.App.Run):
		return submitCode(fmt.Errorf("submit: app %s %w, as run %s: muster stop %s, or another --app-id", r.app, job.ErrRuns, st.App.Run, r.app))
	case st.Verdict != nil && st.App.Run == r.first() && !startsAnew(r.launcher, *st.Verdict):
		fmt.Fprintf(r.streams.Err, "run %s of %s is over: %s; nothing of it runs again, and --run NAME begins a new one\n",
			st.App.Run, r.app, verdictText(*st.Verdict))
	}
	return nil
}

func (r *sent) lookup() apps.Lookup {
	return apps.Lookup{State: r.flags.state.Resolve(), Address: r.registry, Named: true, Warn: r.streams.Err}
}

// numbered tells that the launcher numbers the job's runs, from 0 with each submission, as a JobSet does.
func (r *sent) numbered() bool { return r.first() != r.run }

// first is the run that its first agents have.
func (r *sent) first() string {
	if first := clientOf(r.launcher).FirstRun; first != nil {
		return first(r.run, r.flags.job.options.Format)
	}
	return r.run
}

// ours tells a run of this job.
func (r *sent) ours(run string) bool { return runOf(run, r.run) }

// runOf tells a run that was submitted under a name: a launcher that starts a whole job anew numbers its runs.
func runOf(run, name string) bool {
	number, numbered := strings.CutPrefix(run, name+"-")
	return run == name || numbered && number != "" && strings.Trim(number, "0123456789") == ""
}

// tell prints the answer of --json; code is what this ends with, nil where nobody waited.
func (r *sent) tell(v *registry.Verdict) error { return r.answer(v, nil) }

func (r *sent) answer(v *registry.Verdict, code *int) error {
	if !r.flags.json {
		return nil
	}
	out := submission{
		Version: 1, Launcher: r.launcher, ID: r.id, App: r.app, Run: r.run, Registry: r.registry.String(), Objects: r.cargo.objectNames(),
		Lost: append([]string{}, r.lost...), Code: code,
	}
	if r.cargo.store != nil {
		out.Store = r.cargo.store.String()
	}
	if v != nil {
		out.Outcome = new(string(v.Outcome))
	}
	if err := console.PrintJSON(r.streams.Out, out); err != nil {
		return r.unsaid(err)
	}
	return nil
}
