package slider

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/muster-agent/muster/cmd/internal/apps"
	"github.com/muster-agent/muster/cmd/internal/console"
	"github.com/muster-agent/muster/cmd/internal/view"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/wording"
)

// exists answers with its exit code.
func exists(ctx context.Context, c *call) error {
	state, err := c.state()
	if err != nil {
		return err
	}
	a, err := c.open(ctx)
	if name := noApp(""); errors.As(err, &name) {
		fmt.Fprintf(c.Out, "%s does not exist\n", string(name))
		return exit.Silent{Code: answerNo}
	}
	if err != nil {
		return err
	}
	f, err := a.onHost(ctx)
	if err != nil {
		return err
	}
	is := a.state(&f)
	fmt.Fprintf(c.Out, "%s exists: %s\n", a.name, is)
	if !c.wants(state, is) {
		return exit.Silent{Code: answerNo}
	}
	return a.writeReport(ctx)
}

// wants tells whether --live and --state admit an app in this state.
func (c *call) wants(state, is string) bool {
	return (!c.has("--live") || isLive(is)) && (state == "" || state == is)
}

// list lists the apps that were created here.
func list(ctx context.Context, c *call) error {
	if len(c.args) > 1 {
		return exit.Usagef("slider list: got %s, want at most one name", strings.Join(c.args, " "))
	}
	state, err := c.state()
	if err != nil {
		return err
	}
	var rows [][]string
	err = c.each(ctx, c.args, func(a *app, f *apps.Facts) {
		is := a.state(f)
		if !c.wants(state, is) {
			return
		}
		outcome := ""
		if is != yarnNew { // an app that never ran has none
			outcome = view.OrEmpty(f.Outcome())
		}
		rows = append(rows, []string{a.name, is, wording.Clock(f.Started()), outcome, a.record.AppDef})
		rows = append(rows, c.containers(f)...)
	})
	if err != nil {
		return err
	}
	if len(rows) == 0 {
		fmt.Fprintln(c.Err, "no such app was created here; muster ps lists what else runs")
		if len(c.args) == 1 {
			return exit.Silent{Code: answerNo}
		}
		return nil
	}
	return console.Table(c.Out, "NAME STATE STARTED OUTCOME APPDEF", rows)
}

// containers are the rows of an app's instances, where --containers asks for them.
func (c *call) containers(f *apps.Facts) [][]string {
	if !c.has("--containers") || f.Local == nil && f.Registry == nil {
		return nil
	}
	only := slices.Concat(c.given["--components"]...)
	var rows [][]string
	for _, row := range view.Of(*f).Instances {
		if len(only) > 0 && !slices.Contains(only, row.Component) {
			continue
		}
		rows = append(rows, []string{"  " + row.Instance, row.Phase, wording.Clock(row.Since), "", row.Host})
	}
	return rows
}
