package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/muster-agent/muster/cmd/internal/apps"
	"github.com/muster-agent/muster/cmd/internal/console"
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/registry/consul"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/openapp"
	"github.com/muster-agent/muster/shim/plan"
	"github.com/muster-agent/muster/shim/publisher"
	"github.com/muster-agent/muster/shim/wording"
)

// view is the app as Slider's REST would have it. An app that does not run has components, and no members.
func (a *sliderApp) view(ctx context.Context, s console.Streams, p *sliderWords) (apps.Facts, publisher.View, error) {
	f, err := a.facts(ctx, s, p)
	if err != nil {
		return f, publisher.View{}, err
	}
	app, err := a.definition()
	if err != nil {
		return f, publisher.View{}, err
	}
	known := consul.Status{ID: a.name}
	if f.Registry != nil {
		known = *f.Registry
		if known.Directive.Counts != nil {
			app = app.WithCounts(known.Directive.Counts)
		}
	}
	user, _, _ := strings.Cut(apps.Asker(), "@")
	vars := (&openapp.App{App: app, Vars: app.Vars}).ClientVars()
	return f, publisher.ViewOf(&app, known, user, func(in registry.Instance) plan.Request {
		return plan.Request{
			AppID: a.name, Run: known.App.Run, Component: in.Component, Index: in.Index, Allocation: plan.Allocation{User: user, Vars: vars},
		}
	}), nil
}

// fixedView answers from one view.
type fixedView struct{ view publisher.View }

func (f fixedView) View(context.Context) (publisher.View, error) { return f.view, nil }

func (fixedView) Stop(context.Context, string) error {
	return errors.New("a view stops nothing")
}

// answerOf is what the agents' REST answers to a GET of a path below ws/v1/slider; nil when it has no content.
func answerOf(ctx context.Context, v publisher.View, path string) (json.RawMessage, error) {
	const prefix = "/view"
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://127.0.0.1"+prefix+"/ws/v1/slider/"+path, http.NoBody)
	if err != nil {
		return nil, exit.With(exit.Internal, err)
	}
	kept := &keptAnswer{header: http.Header{}, code: http.StatusOK}
	publisher.Handler(prefix, fixedView{v}).ServeHTTP(kept, request)
	switch kept.code {
	case http.StatusOK:
		return kept.body.Bytes(), nil
	case http.StatusNoContent:
		return nil, nil
	}
	return nil, exit.With(exit.Internal, fmt.Errorf("%s: %d %s", path, kept.code, kept.body.String()))
}

// keptAnswer is an http.ResponseWriter that keeps what is written.
type keptAnswer struct {
	header http.Header
	code   int
	body   bytes.Buffer
}

func (k *keptAnswer) Header() http.Header            { return k.header }
func (k *keptAnswer) Write(text []byte) (int, error) { return k.body.Write(text) }
func (k *keptAnswer) WriteHeader(code int)           { k.code = code }

// sliderExports prints all export groups of an app, or one.
func sliderExports(ctx context.Context, s console.Streams, p *sliderWords) error {
	a, err := p.open()
	if err != nil {
		return err
	}
	return a.exports(ctx, s, p, p.one("--group"))
}

func (a *sliderApp) exports(ctx context.Context, s console.Streams, p *sliderWords, group string) error {
	_, v, err := a.view(ctx, s, p)
	if err != nil {
		return err
	}
	path := "publisher/exports"
	if group != "" {
		path += "/" + url.PathEscape(group)
	}
	answer, err := answerOf(ctx, v, path)
	if err != nil {
		return err
	}
	if answer == nil {
		groups, err := groupNames(ctx, v)
		if err != nil {
			return err
		}
		fmt.Fprintf(s.Err, "%s publishes no group %s; there is: %s\n", a.name, group, wording.OrNone(groups))
		return exit.Silent{Code: sliderNo}
	}
	return p.print(s, answer)
}

// groupNames are the groups of which something is published.
func groupNames(ctx context.Context, v publisher.View) ([]string, error) {
	answer, err := answerOf(ctx, v, "publisher/exports")
	if err != nil {
		return nil, err
	}
	var all struct{ Exports map[string]json.RawMessage }
	if err := json.Unmarshal(answer, &all); err != nil {
		return nil, exit.With(exit.Internal, err)
	}
	return slices.Sorted(maps.Keys(all.Exports)), nil
}

// sliderAsks are what `registry` can be asked, one at a time.
func sliderAsks() []string {
	return []string{"--list", "--listexp", "--getexp", "--listconf", "--getconf"}
}

// sliderRegistry answers `registry --name NAME --getexp GROUP` and its like.
func sliderRegistry(ctx context.Context, s console.Streams, p *sliderWords) error {
	asked := slices.DeleteFunc(sliderAsks(), func(o string) bool { return !p.has(o) })
	switch {
	case len(p.args) > 0:
		return exit.Usagef("slider registry: got %s, want --name NAME", strings.Join(p.args, " "))
	case len(asked) != 1:
		return exit.Usagef("slider registry: want one of %s", strings.Join(sliderAsks(), ", "))
	case asked[0] == "--list":
		return sliderServices(ctx, s, p)
	case !p.has("--name"):
		return exit.Usagef("slider registry: want --name NAME, the app")
	}
	format, err := p.format(asked[0])
	if err != nil {
		return err
	}
	home, err := openSliderHome()
	if err != nil {
		return err
	}
	a, err := home.open(p.one("--name"))
	if err != nil {
		return err
	}
	switch asked[0] {
	case "--getexp":
		return a.exports(ctx, s, p, p.one("--getexp"))
	case "--getconf":
		return a.config(ctx, s, p, format)
	}
	_, v, err := a.view(ctx, s, p)
	if err != nil {
		return err
	}
	names := slices.Sorted(maps.Keys(v.Configs))
	if asked[0] == "--listexp" {
		if names, err = groupNames(ctx, v); err != nil {
			return err
		}
	}
	for _, name := range names {
		fmt.Fprintln(s.Out, name)
	}
	return nil
}

// format is --format, or Slider's default.
func (p *sliderWords) format(asked string) (string, error) {
	format, known := cmp.Or(strings.ToLower(p.one("--format")), "xml"), []string{"xml", "json", "properties"}
	if asked == "--getexp" && p.has("--format") && format != "json" {
		return "", exit.Usagef("slider registry: --format %s: exports are json", format)
	}
	if !slices.Contains(known, format) {
		return "", exit.Usagef("slider registry: --format %s: want one of %s", format, strings.Join(known, ", "))
	}
	return format, nil
}

// config prints a published configuration as the agents' REST gives it.
func (a *sliderApp) config(ctx context.Context, s console.Streams, p *sliderWords, format string) error {
	_, v, err := a.view(ctx, s, p)
	if err != nil {
		return err
	}
	name := p.one("--getconf")
	if _, ok := v.Configs[name]; !ok {
		fmt.Fprintf(s.Err, "%s publishes no configuration %s; there is: %s\n", a.name, name, wording.OrNone(slices.Sorted(maps.Keys(v.Configs))))
		return exit.Silent{Code: sliderNo}
	}
	answer, err := answerOf(ctx, v, "publisher/slider/"+url.PathEscape(name)+"."+format)
	if err != nil {
		return err
	}
	return p.write(s, answer)
}

// sliderServices lists the apps that run, or the one that --name asks for.
func sliderServices(ctx context.Context, s console.Streams, p *sliderWords) error {
	home, err := openSliderHome()
	if err != nil {
		return err
	}
	names, err := home.names()
	if err != nil {
		return exit.With(exit.Forbidden, err)
	}
	for _, name := range names {
		a, err := home.open(name)
		if err != nil {
			fmt.Fprintf(s.Err, "%s: %v\n", name, err)
			continue
		}
		f, err := a.hostFacts(ctx, s, p)
		if err != nil {
			return err
		}
		if liveState(yarnState(&f)) && (!p.has("--name") || p.one("--name") == name) {
			fmt.Fprintln(s.Out, name)
		}
	}
	return nil
}
