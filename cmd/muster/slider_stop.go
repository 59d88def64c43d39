package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/muster-agent/muster/cmd/internal/apps"
	"github.com/muster-agent/muster/cmd/internal/ask"
	"github.com/muster-agent/muster/cmd/internal/console"
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/fault"
	"github.com/muster-agent/muster/shim/hostlock"
	"github.com/muster-agent/muster/shim/wait"
	"github.com/muster-agent/muster/shim/workdir"
)

// sliderStop ends the run with the verdict stopped. To stop what does not run is no error, as in Slider.
func sliderStop(ctx context.Context, s console.Streams, p *sliderWords) error {
	limit, limited, err := p.wait()
	if err != nil {
		return err
	}
	a, err := p.open()
	if err != nil {
		return err
	}
	if limited && limit == 0 {
		return a.end(ctx, s, p, false)
	}
	if limited {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	err = a.end(ctx, s, p, true)
	if errors.Is(err, context.DeadlineExceeded) && limited {
		fmt.Fprintf(s.Err, "%s: still stopping after %s; muster slider status %s says more\n", a.name, limit, a.name)
		return exit.Silent{Code: exit.Timeout}
	}
	return err
}

// open finds the app that the command line names.
func (p *sliderWords) open() (*sliderApp, error) {
	name, err := p.name()
	if err != nil {
		return nil, err
	}
	home, err := openSliderHome()
	if err != nil {
		return nil, err
	}
	return home.open(name)
}

// end stops the run. One that ends by itself meanwhile takes its registry with it: then nothing is left to be asked.
func (a *sliderApp) end(ctx context.Context, s console.Streams, p *sliderWords, waits bool) error {
	err := a.stop(ctx, s, p, waits)
	if err == nil || ctx.Err() != nil {
		return err
	}
	waiting, cancel := context.WithTimeout(ctx, workdir.TakeoverPatience)
	defer cancel()
	over := wait.Until(waiting, func() bool {
		facts, err := a.hostFacts(waiting, s, p)
		return err == nil && !sliderRuns(&facts)
	})
	if !over {
		return err
	}
	fmt.Fprintf(s.Out, "%s: ended by itself\n", a.name)
	return nil
}

// heard waits until somebody can be asked: a run that has just been started is not there yet.
func (a *sliderApp) heard(ctx context.Context, s console.Streams, p *sliderWords) (apps.Facts, error) {
	waiting, cancel := context.WithTimeout(ctx, workdir.TakeoverPatience)
	defer cancel()
	quiet := console.Streams{Err: io.Discard}
	wait.Until(waiting, func() bool {
		f, err := a.facts(waiting, quiet, p)
		coming := f.Registry == nil && (errors.Is(f.Silent, registry.ErrNoApp) || !f.Living()) || f.Registry != nil && f.Registry.Live == 0
		return err != nil || !sliderRuns(&f) || f.Verdict() != nil || !coming
	})
	return a.facts(ctx, s, p)
}

// stop asks the run to stop and, where that is wanted, waits for its end.
func (a *sliderApp) stop(ctx context.Context, s console.Streams, p *sliderWords, waits bool) error {
	k := a.lookup(s, p)
	facts, err := a.heard(ctx, s, p)
	if err != nil {
		return err
	}
	var grace *time.Duration
	if p.has("--force") {
		grace = new(time.Duration(0))
	}
	switch v := facts.Verdict(); {
	case v != nil && facts.Registry != nil && facts.Registry.Live > 0: // it stops already
		if !waits {
			return nil
		}
		return ask.AwaitEnd(ctx, s, k, facts, *v)
	case !sliderRuns(&facts):
		fmt.Fprintf(s.Out, "%s does not run\n", a.name)
		return nil
	case facts.Registry == nil:
		return ask.StopAgents(ctx, s, k, facts, grace)
	}
	if err := a.ask(ctx, facts, grace, p.one("--message")); err != nil || !waits {
		return err
	}
	c, err := apps.Open(facts.Address)
	if err != nil {
		return err
	}
	defer c.Close()
	v, err := ask.AwaitVerdict(ctx, c, k, facts)
	if err != nil {
		return err
	}
	return ask.AwaitEnd(ctx, s, k, facts, v)
}

// ask asks the gang's conductor to stop it. The reason stands in the verdict, behind who asked.
func (a *sliderApp) ask(ctx context.Context, facts apps.Facts, grace *time.Duration, reason string) error {
	ask := registry.Ask{Kind: registry.AskStop, By: "stop", Args: map[string]string{"who": apps.Asker()}}
	if reason = oneLine(reason); reason != "" {
		ask.Args["who"] += " (" + reason + ")"
	}
	if grace != nil {
		ask.Args["grace"] = strconv.FormatFloat(grace.Seconds(), 'f', -1, 64)
	}
	return apps.Ask(ctx, facts.Address, a.name, ask)
}

// mostReason is how much of a reason is kept, in characters.
const mostReason = 200

// oneLine is a text as it can stand in a cause.
func oneLine(text string) string {
	text = strings.Join(strings.FieldsFunc(text, func(r rune) bool { return unicode.IsControl(r) || unicode.IsSpace(r) }), " ")
	if runes := []rune(text); len(runes) > mostReason {
		text = string(runes[:mostReason]) + "…"
	}
	return text
}

// sliderDestroy removes an app: what the registry and this host remember of it, and its folder with logs and
// checkpoints.
func sliderDestroy(ctx context.Context, s console.Streams, p *sliderWords) error {
	a, lock, err := p.openLocked()
	if err != nil {
		return err
	}
	defer func() { _ = lock.Release() }() // this process ends
	facts, err := a.hostFacts(ctx, s, p)
	if err != nil {
		return err
	}
	switch {
	case sliderRuns(&facts) && !p.has("--force"):
		return exit.With(exit.Held, fmt.Errorf("%s runs: muster slider stop %s first, or destroy --force, which kills it", a.name, a.name))
	case !p.has("--force"):
		return exit.Usagef("slider destroy: would remove %s for good, with its logs and checkpoints; --force does it", a.dir)
	case sliderRuns(&facts):
		if err := a.end(ctx, s, p, true); err != nil {
			return err
		}
	}
	work, err := a.ownWork(ctx)
	if err != nil {
		return err
	}
	if work != nil {
		defer func() { _ = work.Release() }() // this process ends
	}
	if err := a.forget(ctx, s, p); err != nil {
		return err
	}
	others, err := a.remove()
	if err != nil {
		return exit.With(exit.Forbidden, err)
	}
	if len(others) > 0 {
		fmt.Fprintf(s.Out, "%s: destroyed; left, for they are not muster's: %s\n", a.name, strings.Join(others, ", "))
		return nil
	}
	fmt.Fprintf(s.Out, "%s: destroyed, with %s\n", a.name, a.dir)
	return nil
}

// ownWork takes the work folder as a run would; one that has just ended may have it a moment longer.
func (a *sliderApp) ownWork(ctx context.Context) (lock *hostlock.Lock, err error) {
	if _, err := os.Lstat(a.work()); errors.Is(err, fs.ErrNotExist) { // it never ran
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, workdir.TakeoverPatience)
	defer cancel()
	wait.Until(ctx, func() bool {
		lock, err = workdir.LockRun(a.work())
		held := fault.Is(err, registry.ClassHost)
		return !held
	})
	if fault.Is(err, registry.ClassHost) {
		err = exit.With(exit.Held, err)
	}
	return lock, err
}

// forget removes what the run left in its registry and in this host's state; of a run of the same name that is not
// this app's, nothing.
func (a *sliderApp) forget(ctx context.Context, s console.Streams, p *sliderWords) error {
	k := a.lookup(s, p)
	facts, err := k.OnHost(ctx, a.name)
	if err != nil {
		return err
	}
	switch {
	case facts.Local != nil && filepath.Clean(facts.Local.WorkDir) != a.work():
		return nil
	case facts.Local == nil && a.record.Run.Registry == "":
		return nil
	}
	err = k.Forget(ctx, a.name)
	if facts.Local == nil && exit.CodeOf(err) == exit.Usage { // the registry does not know it either
		return nil
	}
	return err
}
