package slider

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/muster-agent/muster/cmd/internal/apps"
	"github.com/muster-agent/muster/cmd/internal/seeds"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/publisher"
	"github.com/muster-agent/muster/shim/status"
	"github.com/muster-agent/muster/shim/wording"
)

// view is the app as Slider's REST shows it: an agent of the app answers, with the values that the app has. An app
// that does not run has components, and no members.
func (a *app) view(ctx context.Context) (apps.Facts, publisher.View, error) {
	f, err := a.facts(ctx)
	if err != nil {
		return f, publisher.View{}, err
	}
	if v, ok := a.askAgents(ctx, &f); ok {
		return f, v, nil
	}
	app, err := a.definition(ctx)
	if err != nil {
		return f, publisher.View{}, err
	}
	user, _, _ := strings.Cut(apps.Asker(), "@")
	v := seeds.SliderView(f, app, user)
	v.Over = !isLive(a.state(&f))
	return f, v, nil
}

// askAgents asks the agents of the app on this host, one after the other, until one answers.
func (a *app) askAgents(ctx context.Context, f *apps.Facts) (v publisher.View, ok bool) {
	ctx, cancel := context.WithTimeout(ctx, apps.Patience)
	defer cancel()
	sockets := a.lookup().State.Sockets(a.name)
	for _, instance := range slices.Sorted(maps.Keys(f.States)) {
		agent := status.Dial(sockets[instance])
		err := agent.View(ctx, &v)
		agent.Close()
		if err == nil {
			return v, true
		}
	}
	return publisher.View{}, false
}

// answer is what the agents' REST answers of a view; nil when the answer is empty.
func answer(v publisher.View, path ...string) (json.RawMessage, error) {
	text, err := publisher.Get(v, path...)
	return text, exit.With(exit.Internal, err)
}

// exports prints all export groups of an app, or one.
func exports(ctx context.Context, c *call) error {
	a, err := c.open(ctx)
	if err != nil {
		return err
	}
	return a.exports(ctx, c.one("--group"))
}

func (a *app) exports(ctx context.Context, group string) error {
	_, v, err := a.view(ctx)
	if err != nil {
		return err
	}
	path := []string{"publisher", "exports"}
	if group != "" {
		path = append(path, group)
	}
	found, err := answer(v, path...)
	if err != nil {
		return err
	}
	if found == nil {
		groups, err := groupNames(v)
		if err != nil {
			return err
		}
		fmt.Fprintf(a.Err, "%s publishes no group %s; there is: %s\n", a.name, group, wording.OrNone(groups))
		return exit.Silent{Code: answerNo}
	}
	return a.print(found)
}

// groupNames are the groups of which something is published.
func groupNames(v publisher.View) ([]string, error) { return namesIn(v, "exports") }

// configNames are the published configurations, a flat copy of each export group among them.
func configNames(v publisher.View) ([]string, error) { return namesIn(v, "slider") }

// namesIn are the names in a set of the publisher.
func namesIn(v publisher.View, set string) ([]string, error) {
	found, err := answer(v, "publisher", set)
	if err != nil {
		return nil, err
	}
	var all struct{ Exports, Configurations map[string]json.RawMessage } // the set has one of them
	if err := json.Unmarshal(found, &all); err != nil {
		return nil, exit.With(exit.Internal, err)
	}
	return slices.Concat(slices.Sorted(maps.Keys(all.Exports)), slices.Sorted(maps.Keys(all.Configurations))), nil
}

// questions are what `registry` can be asked, one at a time.
func questions() []string {
	return []string{"--list", "--listexp", "--getexp", "--listconf", "--getconf"}
}

// askRegistry answers `registry --name NAME --getexp GROUP` and its like.
func askRegistry(ctx context.Context, c *call) error {
	asked := slices.DeleteFunc(questions(), func(o string) bool { return !c.has(o) })
	switch {
	case len(c.args) > 0:
		return exit.Usagef("slider registry: got %s, want --name NAME", strings.Join(c.args, " "))
	case len(asked) != 1:
		return exit.Usagef("slider registry: want one of %s", strings.Join(questions(), ", "))
	case asked[0] == "--list":
		return c.listServices(ctx)
	case !c.has("--name"):
		return exit.Usagef("slider registry: want --name NAME, the app")
	}
	format, err := c.format(asked[0])
	if err != nil {
		return err
	}
	h, err := openHome()
	if err != nil {
		return err
	}
	a, err := h.find(ctx, c, c.one("--name"))
	if err != nil {
		return err
	}
	switch asked[0] {
	case "--getexp":
		return a.exports(ctx, c.one("--getexp"))
	case "--getconf":
		return a.config(ctx, c.one("--getconf"), format)
	}
	_, v, err := a.view(ctx)
	if err != nil {
		return err
	}
	names := configNames
	if asked[0] == "--listexp" {
		names = groupNames
	}
	found, err := names(v)
	if err != nil {
		return err
	}
	for _, name := range found {
		fmt.Fprintln(c.Out, name)
	}
	return nil
}

// format is --format, or Slider's default.
func (c *call) format(asked string) (string, error) {
	format, known := cmp.Or(strings.ToLower(c.one("--format")), "xml"), []string{"xml", "json", "properties"}
	if asked == "--getexp" && c.has("--format") && format != "json" {
		return "", exit.Usagef("slider registry: --format %s: exports are json", format)
	}
	if !slices.Contains(known, format) {
		return "", exit.Usagef("slider registry: --format %s: want one of %s", format, strings.Join(known, ", "))
	}
	return format, nil
}

// config prints a published configuration as the agents' REST gives it.
func (a *app) config(ctx context.Context, name, format string) error {
	_, v, err := a.view(ctx)
	if err != nil {
		return err
	}
	found, err := a.published(v, name, format)
	if err != nil {
		return err
	}
	return a.writeAs(name+"."+format, found)
}

// published is a configuration in a format; one that nobody publishes is an answer of no.
func (a *app) published(v publisher.View, name, format string) ([]byte, error) {
	known, err := configNames(v)
	if err != nil {
		return nil, err
	}
	if !slices.Contains(known, strings.ToLower(name)) {
		fmt.Fprintf(a.Err, "%s publishes no configuration %s; there is: %s\n", a.name, name, wording.OrNone(known))
		return nil, exit.Silent{Code: answerNo}
	}
	return answer(v, "publisher", "slider", name+"."+format)
}

// listServices lists the apps that run, or the one that --name asks for.
func (c *call) listServices(ctx context.Context) error {
	var only []string
	if c.has("--name") {
		only = []string{c.one("--name")}
	}
	return c.each(ctx, only, func(a *app, f *apps.Facts) {
		if isLive(a.state(f)) {
			fmt.Fprintln(c.Out, a.name)
		}
	})
}
