package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/muster-agent/muster/cmd/internal/apps"
	"github.com/muster-agent/muster/cmd/internal/console"
	"github.com/muster-agent/muster/cmd/internal/flags"
	"github.com/muster-agent/muster/cmd/internal/view"
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/registry/consul"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/submit"
)

type statusFlags struct {
	ask  *flags.Ask
	json bool
	wait bool
	run  string // to wait for; "": the one that there is
}

func newStatus(s console.Streams) *cobra.Command {
	f := statusFlags{ask: &flags.Ask{}}
	cmd := &cobra.Command{
		Use: "status APP", Short: "Print the state of a run: instances, conductor, missing members, verdict",
		SuggestFor: []string{"list", "describe", "info"},
		Args:       exactly("APP"),
		Long: `Asks the registry, the agents on this host, and up to 256 reachable agents on others. When there is no
registry any more, as after the end of muster run, the files of the run are read instead.

With --wait it first follows the run, on stderr, until there is a verdict, and exits with the
verdict's exit code (muster help exit-codes). It also waits for a run that the registry does not know
yet, because its job may be in a launcher's queue. With --run as well it waits for that run, also while
the registry still knows only the app's run before it. Of a run that was followed by another it
prints the verdict.`,
		Example:           "  muster status d1\n  muster status d1 --registry consul://127.0.0.1:8500 --json",
		ValidArgsFunction: completeKnown(f.ask),
		RunE:              func(cmd *cobra.Command, args []string) error { return f.status(cmd.Context(), s, args[0]) },
	}
	f.ask.Register(cmd.Flags())
	f.ask.UI.Register(cmd.Flags())
	f.ask.History.Register(cmd.Flags())
	cmd.Flags().BoolVar(&f.json, "json", false, "print as JSON")
	cmd.Flags().BoolVar(&f.wait, "wait", false, "follow the run until it ends, and exit with its verdict")
	cmd.Flags().StringVar(&f.run, "run", "",
		"with --wait: the run to wait for, with --history: an earlier run (default: the last)")
	return cmd
}

func (f *statusFlags) status(ctx context.Context, s console.Streams, app string) error {
	if f.run != "" && !f.wait && f.ask.History.URL == "" {
		return exit.Usagef("status: --run %s without --wait or --history", f.run)
	}
	if f.ask.History.URL != "" {
		f.ask.History.Run = f.run
	}
	k, err := f.ask.Lookup(app, s.Err)
	if err != nil {
		return err
	}
	facts, err := k.App(ctx, app)
	left := false
	if err == nil {
		facts, left, err = f.lastRun(ctx, k, facts, f.run)
	}
	if f.wait && !left && (err == nil || errors.Is(err, registry.ErrNoApp)) && f.mayGoOn(facts) {
		facts, err = f.follow(ctx, s, k, facts)
	}
	if err != nil {
		return err
	}
	facts.AskPeers(ctx)
	v := view.Of(facts)
	v.ShowKeys(facts)
	show := func() error { return v.Print(s.Out) }
	if f.json {
		show = func() error { return console.PrintJSON(s.Out, v) }
	}
	if err := show(); err != nil || !f.wait {
		return err
	}
	return verdictCode(&v)
}

// mayGoOn tells that there is something to wait for: a registry that may hear of the run, which is not known to be
// over.
func (f *statusFlags) mayGoOn(facts apps.Facts) bool {
	meant := f.run == "" || submit.IsRunOf(facts.Run(), f.run)
	over := facts.Registry == nil && facts.Local != nil && (facts.Result != nil || facts.Verdict() != nil)
	return !facts.Address.IsZero() && !(meant && over)
}

// follow waits until the run is over, and asks about it again.
func (f *statusFlags) follow(
	ctx context.Context, s console.Streams, k apps.Lookup, facts apps.Facts,
) (apps.Facts, error) {
	run := f.run
	ours := func(other string) bool {
		if run == "" { // the first that is seen
			run = other
		}
		return other == run || f.run != "" && submit.IsRunOf(other, f.run)
	}
	say := func(line string) { fmt.Fprintln(s.Err, line) }
	asked := untilResult{runsOf{k, facts.Address}}
	if err := submit.Follow(ctx, asked, facts.Address, facts.ID, ours, say); err != nil {
		return facts, err
	}
	facts, err := k.App(ctx, facts.ID)
	if err != nil {
		return facts, err
	}
	facts, _, err = f.lastRun(ctx, k, facts, run)
	return facts, err
}

// untilResult asks the registry of a run, which may end with the run that it belongs to: then the result that the run
// has left on this host answers.
type untilResult struct{ runsOf }

func (r untilResult) Status(ctx context.Context, app string) (consul.Status, error) {
	st, err := r.runsOf.Status(ctx, app)
	if err == nil || errors.Is(err, registry.ErrNoApp) {
		return st, err
	}
	facts, unread := r.lookup.OnHost(ctx, app)
	if unread != nil || facts.Local == nil || facts.Result == nil || facts.Living() {
		return st, err
	}
	v := facts.Verdict()
	if v == nil { // it was interrupted
		return st, registry.ErrNoApp
	}
	return ofVerdict(app, v), nil
}

// ofVerdict is the status of a run that is over.
func ofVerdict(app string, v *registry.Verdict) consul.Status {
	return consul.Status{ID: app, App: registry.AppRecord{Run: v.Run}, Verdict: v, Directive: registry.Directive{
		Run: v.Run, Gen: v.Gen, Act: registry.ActStop, Verdict: v, Why: v.Cause, First: v.First, At: v.At,
	}}
}

// lastRun is how a run ended that the app has left behind: its next one is there already. Facts are as they were where
// the run is the one that is there, or has no verdict yet: it is not left then.
func (f *statusFlags) lastRun(
	ctx context.Context, k apps.Lookup, facts apps.Facts, run string,
) (of apps.Facts, left bool, err error) {
	if run == "" || facts.Registry == nil || submit.IsRunOf(facts.Run(), run) {
		return facts, false, nil
	}
	v, err := runsOf{k, facts.Address}.Verdict(ctx, facts.ID, run)
	if err != nil {
		return facts, false, apps.RegistryError(facts.Address, err)
	}
	if v == nil {
		return facts, false, nil
	}
	last := ofVerdict(facts.ID, v)
	return apps.Facts{ID: facts.ID, Address: facts.Address, Registry: &last}, true, nil
}

// verdictCode is the exit code of what is seen: the verdict's, or that of an interrupted run.
func verdictCode(v *view.App) error {
	code := exit.Interrupted
	if v.Verdict != nil {
		code = exit.Of(*v.Verdict, "")
	}
	if code == 0 {
		return nil
	}
	return exit.Silent{Code: code}
}
