package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/cmd/internal/apps"
	"github.com/muster-agent/muster/cmd/internal/console"
	"github.com/muster-agent/muster/cmd/internal/flags"
	"github.com/muster-agent/muster/cmd/internal/gc"
	"github.com/muster-agent/muster/shim/history"
	"github.com/muster-agent/muster/shim/wording"
)

func newGC(s console.Streams) *cobra.Command {
	var ask flags.Ask
	var past flags.History
	older, dryRun := "7d", false
	cmd := &cobra.Command{
		Use: "gc", Short: "Remove what finished runs and the cache have left on this host", Args: exactly(),
		Long: `Removes the work folders of runs that ended with a verdict before --older-than, with the checkpoints
and logs in them, the records that ps and status have of these apps, and from this user's cache the image
layers and fetched files that no agent holds and none has asked for since, with what broken downloads left
(which is not listed). A folder that --work-dir named,
and one of an interrupted run, which may be resumed, is never removed. --dry-run says what would be removed,
and how much it takes of the disk.

With --history it clears up a history store instead: what the policy's history.keep does not keep (or
90d and 50GiB), or with --older-than what is older.`,
		Example: "  muster gc --dry-run\n  muster gc --older-than 36h\n" +
			"  muster gc --history hdfs://nn/history --dry-run",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if past.URL != "" {
				if !cmd.Flags().Changed("older-than") {
					older = ""
				}
				return collectHistory(cmd.Context(), s, &past, older, dryRun)
			}
			return collect(cmd.Context(), s, &ask, older, dryRun)
		},
	}
	ask.Register(cmd.Flags())
	past.Register(cmd.Flags())
	cmd.Flags().Lookup("history").Usage = "remove ended runs from the history store at this `URL`, nothing of this host"
	cmd.Flags().StringVar(&older, "older-than", older, "what ended before this `AGE`, such as 90m, 36h or 7d")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "remove nothing, print what would be removed")
	return cmd
}

func collect(ctx context.Context, s console.Streams, ask *flags.Ask, older string, dryRun bool) error {
	age, err := parseAge(older)
	if err != nil {
		return err
	}
	k, err := ask.Lookup("", s.Err)
	if err != nil {
		return err
	}
	folders, err := gc.Find(ctx, k, age, time.Now())
	if err != nil {
		return err
	}
	t := tally{dry: dryRun}
	var errs []error
	for _, f := range folders {
		if !dryRun {
			if err := removeFolder(ctx, k, f); err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", f.App, err))
				continue
			}
		}
		t.add(f.App, gc.Cached{What: "work folder", Path: f.Path, Used: f.Ended, Bytes: f.Bytes})
	}
	cached, err := gc.Caches(ctx, time.Now().Add(-age), dryRun)
	errs = append(errs, err)
	for _, c := range cached {
		t.add(c.What, c)
	}
	return errors.Join(append(errs, t.print(s))...)
}

// collectHistory removes the runs of a store that its bound does not keep, or those that are older than an age.
func collectHistory(ctx context.Context, s console.Streams, past *flags.History, older string, dry bool) error {
	store, bound, err := past.Bounded()
	if err == nil && older != "" {
		var age time.Duration
		age, err = parseAge(older)
		bound = history.Bound{Age: max(age, 1)} // 0 is without end
	}
	if err != nil {
		return err
	}
	defer store.Close()
	over, odd, err := store.Over(ctx, bound, history.Entry{}, time.Now())
	if err != nil {
		return err
	}
	apps.LeftOut(s.Err, "history store "+store.URL, odd)
	t := tally{dry: dry}
	var errs []error
	for _, e := range over {
		if !dry {
			if err := store.Remove(ctx, e); err != nil {
				errs = append(errs, err)
				continue
			}
		}
		at := store.URL + "/" + e.App + "/" + e.Run
		t.add(e.App, gc.Cached{What: "run", Path: at, Used: e.Changed, Bytes: e.Bytes})
	}
	return errors.Join(append(errs, t.print(s))...)
}

// tally is what was removed, in the order in which it was.
type tally struct {
	dry   bool
	rows  [][]string
	kinds []string
	bytes int64
}

func (t *tally) add(what string, c gc.Cached) {
	t.kinds = append(t.kinds, c.What)
	t.bytes += c.Bytes
	t.rows = append(t.rows, []string{what, wording.Clock(c.Used), megabytes(c.Bytes), c.Path})
}

func (t *tally) print(s console.Streams) error {
	if len(t.rows) > 0 {
		if err := console.Table(s.Out, "WHAT USED SIZE PATH", t.rows); err != nil {
			return err
		}
	}
	var parts []string
	for _, kind := range []string{"work folder", "image layer", "fetched file", "run"} {
		n := 0
		for _, k := range t.kinds {
			if k == kind {
				n++
			}
		}
		if n > 0 {
			parts = append(parts, appdef.Counted(n, kind))
		}
	}
	what := "removed"
	if t.dry {
		what = "would be removed"
	}
	if len(parts) == 0 {
		return console.Print(s.Out, "nothing "+what+"\n")
	}
	_, err := fmt.Fprintf(s.Out, "%s %s, %s\n", strings.Join(parts, ", "), what, megabytes(t.bytes))
	return err
}

// removeFolder removes a folder and the records of its run.
func removeFolder(ctx context.Context, k apps.Lookup, f gc.Folder) error {
	if err := f.Remove(); err != nil || !f.Known {
		return err
	}
	return k.Forget(ctx, f.App)
}

func megabytes(bytes int64) string { return fmt.Sprintf("%.1f MB", float64(bytes)/1e6) }
