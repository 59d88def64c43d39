package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/cmd/internal/apps"
	"github.com/muster-agent/muster/cmd/internal/console"
	"github.com/muster-agent/muster/cmd/internal/flags"
	"github.com/muster-agent/muster/cmd/internal/gc"
	"github.com/muster-agent/muster/shim/wording"
)

func newGC(s console.Streams) *cobra.Command {
	var ask flags.Ask
	older, dryRun := "7d", false
	cmd := &cobra.Command{
		Use: "gc", Short: "Remove the work folders and records of finished runs on this host", Args: exactly(),
		Long: `Removes the work folders of runs that ended with a verdict before --older-than, with the checkpoints
and logs in them, and the records that ps and status have of these apps. A folder that --work-dir
named, and one of an interrupted run, which may be resumed, is never removed. --dry-run says what
would be removed, and how much it takes of the disk.`,
		Example: "  muster gc --dry-run\n  muster gc --older-than 36h",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return collect(cmd.Context(), s, &ask, older, dryRun)
		},
	}
	ask.Register(cmd.Flags())
	cmd.Flags().StringVar(&older, "older-than", older, "what ended before this `AGE`, such as 90m, 36h or 7d")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "remove nothing, print what would be removed")
	return cmd
}

func collect(ctx context.Context, s console.Streams, ask *flags.Ask, older string, dryRun bool) error {
	age, err := parseAge(older)
	if err != nil {
		return err
	}
	k, err := ask.Lookup(s.Err)
	if err != nil {
		return err
	}
	folders, err := gc.Find(ctx, k, age, time.Now())
	if err != nil {
		return err
	}
	var rows [][]string
	var errs []error
	var bytes int64
	for _, f := range folders {
		if !dryRun {
			if err := removeFolder(ctx, k, f); err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", f.App, err))
				continue
			}
		}
		bytes += f.Bytes
		rows = append(rows, []string{f.App, wording.Clock(f.Ended), megabytes(f.Bytes), f.Path})
	}
	if len(rows) > 0 {
		if err := console.Table(s.Out, "APP ENDED SIZE FOLDER", rows); err != nil {
			return err
		}
	}
	what := "removed"
	if dryRun {
		what = "would be removed"
	}
	fmt.Fprintf(s.Out, "%s %s, %s\n", appdef.Counted(len(rows), "work folder"), what, megabytes(bytes))
	return errors.Join(errs...)
}

// removeFolder removes a folder and the records of its run.
func removeFolder(ctx context.Context, k apps.Lookup, f gc.Folder) error {
	if err := f.Remove(); err != nil || !f.Known {
		return err
	}
	return k.Forget(ctx, f.App)
}

func megabytes(bytes int64) string { return fmt.Sprintf("%.1f MB", float64(bytes)/1e6) }
