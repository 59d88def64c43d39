package slider

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/cmd/internal/apps"
	"github.com/muster-agent/muster/cmd/internal/ask"
	"github.com/muster-agent/muster/shim/exit"
)

// flexPatience is how long flex waits until the counts are in force, without --wait.
const flexPatience = 5 * time.Minute

// flex changes how many instances the app has: from now on, and at once in its run. As in Slider, +2 and -1 count from
// what is wanted now.
func flex(ctx context.Context, c *call) error {
	limit, err := c.wait()
	if err != nil {
		return err
	}
	if !c.has("--component") {
		return exit.Usagef("slider flex: want --component COMPONENT COUNT")
	}
	a, lock, err := c.openLocked(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = lock.Release() }() // this process ends
	if err := a.mayChange(); err != nil {
		return err
	}
	facts, err := a.facts(ctx)
	if err != nil {
		return err
	}
	want, err := a.counts(ctx, &facts)
	if err != nil {
		return err
	}
	var args []string
	for _, name := range slices.Sorted(maps.Keys(want)) {
		args = append(args, name+"="+strconv.Itoa(want[name]))
	}
	next := a.record
	next.Instances = append(slices.Clone(next.Instances), args...)
	if _, err := a.checkAgain(ctx, &next); err != nil {
		return asGiven(err)
	}
	if c.has("--explain") {
		return a.explainFlex(ctx, c, &facts, args)
	}
	if err := next.write(a.kept()); err != nil {
		return err
	}
	if !a.runs(&facts) {
		fmt.Fprintf(c.Out, "%s: %s, from its next start on\n", a.name, strings.Join(args, ", "))
		return nil
	}
	if err := a.grow(ctx, want); err != nil {
		return err
	}
	defer a.keepGrowing(ctx, want)()
	_ = lock.Release() // the wait may be long, and the record is written
	return ask.Flex(ctx, c.Streams, a.lookup(), a.name, args, ask.FlexOptions{
		Patience: *cmp.Or(limit, new(flexPatience)),
	})
}

// asGiven names the option of Slider's in the problems of counts.
func asGiven(err error) error {
	if problems, ok := errors.AsType[appdef.Problems](err); ok {
		for i := range problems {
			if problems[i].File == "--instances" {
				problems[i].File = "--component"
			}
		}
	}
	return err
}

// explainFlex says what a flex would do, and changes nothing.
func (a *app) explainFlex(ctx context.Context, c *call, f *apps.Facts, args []string) error {
	if !a.runs(f) {
		fmt.Fprintf(c.Out, "%s does not run: %s, from its next start on\n", a.name, strings.Join(args, ", "))
		return nil
	}
	return ask.Flex(ctx, c.Streams, a.lookup(), a.name, args, ask.FlexOptions{Explain: true})
}

// counts are the numbers of --component. Those with + or - count from what is wanted now.
func (a *app) counts(ctx context.Context, f *apps.Facts) (map[string]int, error) {
	app, err := a.definition(ctx)
	if err != nil {
		return nil, err
	}
	now := app.Counts()
	if f.Registry != nil && a.runs(f) {
		maps.Copy(now, f.Registry.Directive.Counts)
		maps.Copy(now, f.Registry.Directive.Target)
	}
	want := map[string]int{}
	for _, w := range a.given["--component"] {
		name, text := w[0], w[1]
		if app.Component(name) == nil {
			hint := appdef.DidYouMean(name, app.ComponentNames())
			if hint != "" {
				hint = "; " + hint
			}
			return nil, exit.Usagef("slider flex: --component %s: no such component, want one of %s%s",
				name, strings.Join(app.ComponentNames(), ", "), hint)
		}
		n, err := strconv.Atoi(text)
		if err != nil {
			return nil, exit.Usagef("slider flex: --component %s %s: want a count, or +N or -N", name, text)
		}
		if strings.HasPrefix(text, "+") || strings.HasPrefix(text, "-") {
			n += now[name]
		}
		if n < 0 {
			return nil, exit.Usagef("slider flex: --component %s %s: want no fewer than none, and there are %d",
				name, text, now[name])
		}
		want[name] = n
		now[name] = n // +1 twice is two
	}
	return want, nil
}
