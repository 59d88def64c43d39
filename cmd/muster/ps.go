package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/muster-agent/muster/cmd/internal/apps"
	"github.com/muster-agent/muster/cmd/internal/console"
	"github.com/muster-agent/muster/cmd/internal/flags"
	"github.com/muster-agent/muster/cmd/internal/view"
	"github.com/muster-agent/muster/shim/wording"
)

type psFlags struct {
	ask     flags.Ask
	json    bool
	running bool
}

func newPs(s console.Streams) *cobra.Command {
	f := psFlags{}
	cmd := &cobra.Command{
		Use: "ps [APP]", Short: "List the apps of this host and of --registry; with APP the same as status",
		Args:              atMost("APP"),
		Example:           "  muster ps --running\n  muster ps d1 --registry consul://127.0.0.1:8500 --json",
		ValidArgsFunction: completeKnown(&f.ask),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				return (&statusFlags{ask: &f.ask, json: f.json}).status(cmd.Context(), s, args[0])
			}
			return f.ps(cmd.Context(), s)
		},
	}
	f.ask.Register(cmd.Flags())
	f.ask.UI.Register(cmd.Flags())
	f.ask.History.Register(cmd.Flags())
	cmd.Flags().BoolVar(&f.json, "json", false, "print as JSON")
	cmd.Flags().BoolVar(&f.running, "running", false, "only apps whose run is not over")
	return cmd
}

func (f *psFlags) ps(ctx context.Context, s console.Streams) error {
	k, err := f.ask.Lookup("", s.Err)
	if err != nil {
		return err
	}
	k.Past.Listed = os.Getenv(flags.HistoryVariable) != "" && !f.running
	rows, err := k.List(ctx)
	if err != nil {
		return err
	}
	if units := f.ask.State.Units(); units != "" && !k.Past.Alone && k.Page == nil {
		rows = k.ListAlso(ctx, rows, units)
	}
	if f.running {
		rows = slices.DeleteFunc(rows, func(r apps.Row) bool { return !r.Running() })
	}
	if f.json {
		return console.PrintJSON(s.Out, apps.Listing{Version: 1, Apps: rows})
	}
	if len(rows) == 0 {
		fmt.Fprintln(s.Err, k.NoApps(f.running))
		return nil
	}
	return printRows(s.Out, rows)
}

func printRows(out io.Writer, rows []apps.Row) error {
	var cells [][]string
	now := time.Now()
	for _, r := range rows {
		started, took, live, at := "", "", "", ""
		if r.Started != nil {
			started = view.Moment(*r.Started, now)
		}
		if r.Seconds != nil {
			took = wording.Took(time.Duration(*r.Seconds * float64(time.Second)))
		}
		if r.Live > 0 {
			live = strconv.Itoa(r.Live)
		}
		if !strings.HasPrefix(r.Registry, "unix:") { // its own has no name that says more
			at = r.Registry
		}
		cells = append(cells, []string{
			r.App, r.Run, r.Name, r.Phase, view.OrEmpty(r.Outcome), live, started, took, cmp.Or(r.Owner, r.User), at,
		})
	}
	head, cells := view.Filled("APP RUN NAME PHASE OUTCOME LIVE STARTED TOOK OWNER REGISTRY", cells)
	return console.Table(out, head, cells)
}
