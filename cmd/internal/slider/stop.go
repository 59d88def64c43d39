package slider

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"

	"github.com/muster-agent/muster/cmd/internal/apps"
	"github.com/muster-agent/muster/cmd/internal/ask"
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/wait"
	"github.com/muster-agent/muster/shim/workdir"
)

// stop ends the run with the verdict stopped. To stop an app that does not run is no error, as in Slider.
func stop(ctx context.Context, c *call) error {
	limit, err := c.wait()
	if err != nil {
		return err
	}
	a, err := c.open(ctx)
	if err != nil {
		return err
	}
	if limit == nil || *limit == 0 {
		return a.end(ctx, limit == nil)
	}
	ctx, cancel := context.WithTimeout(ctx, *limit)
	defer cancel()
	err = a.end(ctx, true)
	if errors.Is(err, context.DeadlineExceeded) {
		fmt.Fprintf(c.Err, "%s: still stopping after %s; muster slider status %s says more\n", a.name, limit, a.name)
		return exit.Silent{Code: exit.Timeout}
	}
	return err
}

// end stops the run. A run that ends by itself meanwhile takes its registry with it: then nothing is left to be asked.
func (a *app) end(ctx context.Context, waits bool) error {
	options := ask.StopOptions{Reason: oneLine(a.one("--message")), NoWait: !waits}
	if a.has("--force") {
		options.Grace = new(time.Duration(0))
	}
	if a.record.Yarn != nil {
		return a.endOnYarn(ctx, waits, options)
	}
	facts, err := a.answering(ctx)
	if err != nil {
		return err
	}
	if !a.runs(&facts) {
		fmt.Fprintf(a.Out, "%s does not run\n", a.name)
		return nil
	}
	err = ask.Stop(ctx, a.Streams, a.lookup(), a.name, options)
	if ctx.Err() != nil || err == nil && !waits {
		return err
	}
	waiting, cancel := context.WithTimeout(ctx, workdir.TakeoverPatience)
	defer cancel()
	over := wait.Until(waiting, func() bool { // it may be started again then
		facts, err := a.onHost(waiting)
		return err == nil && !a.runs(&facts)
	})
	if err == nil || !over {
		return err
	}
	fmt.Fprintf(a.Out, "%s: ended by itself\n", a.name)
	return nil
}

// answering waits until a run can be asked: the agents of a run that was just started are not there yet.
func (a *app) answering(ctx context.Context) (apps.Facts, error) {
	waiting, cancel := context.WithTimeout(ctx, workdir.TakeoverPatience)
	defer cancel()
	quiet := *a
	silent := *a.call
	silent.Err = io.Discard
	quiet.call = &silent
	wait.Until(waiting, func() bool {
		f, err := quiet.facts(waiting)
		unknown := f.Registry == nil && (errors.Is(f.Silent, registry.ErrNoApp) || !f.Living())
		nobody := f.Registry != nil && f.Registry.Live == 0
		over := f.Here() && f.Verdict() != nil // the registry may still show the run before
		return err != nil || !a.runs(&f) || over || !unknown && !nobody
	})
	return a.facts(ctx)
}

// mostReason is how much of a reason is kept, in characters.
const mostReason = 200

// oneLine is a text as it can stand in a cause.
func oneLine(text string) string {
	blank := func(r rune) bool { return unicode.IsControl(r) || unicode.IsSpace(r) }
	text = strings.Join(strings.FieldsFunc(text, blank), " ")
	if runes := []rune(text); len(runes) > mostReason {
		text = string(runes[:mostReason]) + "…"
	}
	return text
}
