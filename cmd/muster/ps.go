package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/muster-agent/muster/cmd/internal/apps"
	"github.com/muster-agent/muster/cmd/internal/console"
	"github.com/muster-agent/muster/cmd/internal/flags"
	"github.com/muster-agent/muster/cmd/internal/view"
	"github.com/muster-agent/muster/shim/wording"
)

type psFlags struct {
	ask  flags.Ask
	json bool
}

// appList is the answer of muster ps --json.
type appList struct {
	Version int        `json:"version"`
	Apps    []apps.Row `json:"apps"`
}

func newPs(s console.Streams) *cobra.Command {
	f := psFlags{}
	cmd := &cobra.Command{
		Use: "ps [APP]", Short: "List the apps of this host and of --registry; with APP the same as status",
		Args:              atMost("APP"),
		Example:           "  muster ps\n  muster ps d1 --registry consul://127.0.0.1:8500 --json",
		ValidArgsFunction: completeKnown(&f.ask),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				return (&statusFlags{ask: f.ask, json: f.json}).status(cmd.Context(), s, args[0])
			}
			return f.ps(cmd.Context(), s)
		},
	}
	f.ask.Register(cmd.Flags())
	cmd.Flags().BoolVar(&f.json, "json", false, "print as JSON")
	return cmd
}

func (f *psFlags) ps(ctx context.Context, s console.Streams) error {
	k, err := f.ask.Lookup(s.Err)
	if err != nil {
		return err
	}
	rows, err := k.List(ctx)
	if err != nil {
		return err
	}
	if f.json {
		return console.PrintJSON(s.Out, appList{Version: 1, Apps: rows})
	}
	if len(rows) == 0 {
		fmt.Fprintln(s.Err, "no apps on this host; --registry consul://HOST:PORT asks a registry")
		return nil
	}
	return printRows(s.Out, rows)
}

func printRows(out io.Writer, rows []apps.Row) error {
	var cells [][]string
	for _, r := range rows {
		started := ""
		if r.Started != nil {
			started = wording.Clock(*r.Started)
		}
		cells = append(cells, []string{r.App, r.Name, r.Phase, view.OrEmpty(r.Outcome), started, r.Registry})
	}
	return console.Table(out, "APP NAME PHASE OUTCOME STARTED REGISTRY", cells)
}
