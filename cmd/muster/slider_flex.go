package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/cmd/internal/apps"
	"github.com/muster-agent/muster/cmd/internal/ask"
	"github.com/muster-agent/muster/cmd/internal/console"
	"github.com/muster-agent/muster/shim/exit"
)

// flexPatience is how long flex waits until the counts are in force, without --wait.
const flexPatience = 5 * time.Minute

// sliderFlex changes how many instances the app has: from now on, and at once in its run. As in Slider, +2 and -1 count
// from what is wanted now.
func sliderFlex(ctx context.Context, s console.Streams, p *sliderWords) error {
	limit, limited, err := p.wait()
	if err != nil {
		return err
	}
	if !limited {
		limit = flexPatience
	}
	if !p.has("--component") {
		return exit.Usagef("slider flex: want --component COMPONENT COUNT")
	}
	a, lock, err := p.openLocked()
	if err != nil {
		return err
	}
	defer func() { _ = lock.Release() }() // this process ends
	facts, err := a.facts(ctx, s, p)
	if err != nil {
		return err
	}
	want, err := a.counts(&facts, p)
	if err != nil {
		return err
	}
	var args []string
	for _, name := range slices.Sorted(maps.Keys(want)) {
		args = append(args, name+"="+strconv.Itoa(want[name]))
	}
	next := a.record
	next.Instances = append(slices.Clone(next.Instances), args...)
	if err := next.check(s, a.dir); err != nil {
		return err
	}
	if err := next.write(a.dir); err != nil {
		return err
	}
	if !sliderRuns(&facts) {
		fmt.Fprintf(s.Out, "%s: %s, from its next start on\n", a.name, strings.Join(args, ", "))
		return nil
	}
	_ = lock.Release() // what follows may take its time, and the app is as it shall be
	k := a.lookup(s, p)
	return ask.Flex(ctx, s, k, a.name, args, limit, false)
}

// nearComponent is a hint, or nothing.
func nearComponent(app appdef.App, name string) string {
	if hint := appdef.DidYouMean(name, app.ComponentNames()); hint != "" {
		return "; " + hint
	}
	return ""
}

// counts are the numbers of --component, counted from those that are wanted now where they say + or -.
func (a *sliderApp) counts(f *apps.Facts, p *sliderWords) (map[string]int, error) {
	app, err := a.definition()
	if err != nil {
		return nil, err
	}
	now := app.Counts()
	if f.Registry != nil && sliderRuns(f) {
		maps.Copy(now, f.Registry.Directive.Counts)
		maps.Copy(now, f.Registry.Directive.Target)
	}
	want := map[string]int{}
	for _, w := range p.given["--component"] {
		if app.Component(w[0]) == nil {
			return nil, exit.Usagef("slider flex: --component %s: no such component, want one of %s%s", w[0], strings.Join(app.ComponentNames(), ", "), nearComponent(app, w[0]))
		}
		n, err := strconv.Atoi(w[1])
		if err != nil {
			return nil, exit.Usagef("slider flex: --component %s %s: want a count, or +N or -N", w[0], w[1])
		}
		if strings.HasPrefix(w[1], "+") || strings.HasPrefix(w[1], "-") {
			n += now[w[0]]
		}
		if n < 0 {
			return nil, exit.Usagef("slider flex: --component %s %s: want no fewer than none, and there are %d", w[0], w[1], now[w[0]])
		}
		want[w[0]] = n
		now[w[0]] = n // +1 twice is two
	}
	return want, nil
}
