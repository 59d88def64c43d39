package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/registry/consul"
	"github.com/muster-agent/muster/shim/status"
	"github.com/muster-agent/muster/shim/wording"
)

type psFlags struct {
	ask  askFlags
	json bool
}

// appRow is one line of muster ps.
type appRow struct {
	App      string     `json:"app"`
	Name     string     `json:"name"`
	Phase    string     `json:"phase"`
	Outcome  *string    `json:"outcome"`
	Started  *time.Time `json:"started"`
	Registry string     `json:"registry"`
	WorkDir  string     `json:"work_dir"` // empty: not started on this host
}

// appList is the answer of muster ps --json.
type appList struct {
	Version int      `json:"version"`
	Apps    []appRow `json:"apps"`
}

func newPs(s streams) *cobra.Command {
	f := psFlags{}
	cmd := &cobra.Command{
		Use: "ps [APP]", Short: "List the apps of this host, with --registry also those there; with APP as status", Args: atMost("APP"),
		Example:           "  muster ps\n  muster ps d1 --registry consul://127.0.0.1:8500 --json",
		ValidArgsFunction: completeKnown(&f.ask),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				return (&statusFlags{ask: f.ask, json: f.json}).status(cmd.Context(), s, args[0])
			}
			return f.ps(cmd.Context(), s)
		},
	}
	f.ask.register(cmd.Flags())
	cmd.Flags().BoolVar(&f.json, "json", false, "print as JSON")
	return cmd
}

func (f *psFlags) ps(ctx context.Context, s streams) error {
	k, err := f.ask.lookup(s.err)
	if err != nil {
		return err
	}
	rows, err := k.rows(ctx)
	if err != nil {
		return err
	}
	if f.json {
		return printJSON(s.out, appList{Version: 1, Apps: rows})
	}
	if len(rows) == 0 {
		fmt.Fprintln(s.err, "no apps on this host; --registry consul://HOST:PORT asks a registry")
		return nil
	}
	return printRows(s.out, rows)
}

func printRows(out io.Writer, rows []appRow) error {
	var cells [][]string
	for _, r := range rows {
		started := ""
		if r.Started != nil {
			started = wording.Clock(*r.Started)
		}
		cells = append(cells, []string{r.App, r.Name, r.Phase, deref(r.Outcome), started, r.Registry})
	}
	return table(out, "APP NAME PHASE OUTCOME STARTED REGISTRY", cells)
}

// rows are the apps of this host and, where a registry was named, its own: the newest first.
func (k lookup) rows(ctx context.Context) ([]appRow, error) {
	known, err := k.state.Apps()
	if err != nil {
		return nil, err
	}
	there := map[string]*consul.Status{}
	if !k.address.IsZero() {
		if there, err = k.inRegistry(ctx); err != nil {
			return nil, err
		}
	}
	rows := []appRow{}
	for _, app := range known {
		f, err := k.onHost(ctx, app.App)
		if err != nil {
			return nil, err
		}
		if f.local == nil { // forgotten meanwhile
			continue
		}
		f.address = app.Registry
		if st := there[app.App]; st != nil && sameRegistry(app.Registry, k.address) {
			f.heard(st)
			delete(there, app.App)
		}
		rows = append(rows, rowOf(f))
	}
	for id, st := range there {
		rows = append(rows, rowOf(appFacts{id: id, address: k.address, registry: st}))
	}
	slices.SortStableFunc(rows, newestFirst)
	return rows, nil
}

func newestFirst(a, b appRow) int {
	switch {
	case a.Started == nil || b.Started == nil:
		return strings.Compare(a.App, b.App)
	case !a.Started.Equal(*b.Started):
		return b.Started.Compare(*a.Started)
	}
	return strings.Compare(a.App, b.App)
}

// sameRegistry tells whether an app's own registry is the one asked. One host has many names; an app
// of the same id in another registry is rare, an alias is not.
func sameRegistry(own, asked registry.Address) bool {
	_, ownSocket := own.Socket()
	_, askedSocket := asked.Socket()
	return own == asked || !ownSocket && !askedSocket
}

func (k lookup) inRegistry(ctx context.Context) (map[string]*consul.Status, error) {
	c, err := openForQuestions(k.address)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(ctx, listPatience)
	defer cancel()
	all, err := c.Apps(ctx)
	if err != nil {
		return nil, registryError(k.address, err)
	}
	found := map[string]*consul.Status{}
	for i := range all {
		found[all[i].ID] = &all[i]
	}
	return found, nil
}

// listPatience bounds the listing of all apps of a registry: one read each.
const listPatience = time.Minute

func rowOf(f appFacts) appRow {
	row := appRow{App: f.id, Name: f.name(), Phase: f.phase(), Outcome: f.outcome(), Registry: f.address.String()}
	if f.here() {
		row.WorkDir = f.local.WorkDir
	}
	if at := f.started(); !at.IsZero() {
		row.Started = new(status.Stamp(at))
	}
	return row
}
