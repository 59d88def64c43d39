package ask

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/cmd/internal/apps"
	"github.com/muster-agent/muster/cmd/internal/console"
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/status"
	"github.com/muster-agent/muster/shim/wait"
)

// StopOptions say how a run is stopped.
type StopOptions struct {
	Grace   *time.Duration // between the stop signal and SIGKILL; nil: the definition's
	Save    bool           // save the outputs first
	Timeout time.Duration  // with Save: for that at most
	Reason  string         // the verdict names it behind the user
	NoWait  bool           // return when the run was asked
}

// Stop asks a run to stop, waits for its end and prints the verdict.
func Stop(ctx context.Context, s console.Streams, k apps.Lookup, app string, o StopOptions) error {
	if o.Grace != nil && *o.Grace < 0 {
		return exit.Usagef("stop: --grace %s: want 0s or more", *o.Grace)
	}
	if o.Save && (o.Timeout <= 0 || o.Timeout > mostStopTimeout) {
		return exit.Usagef("stop: --timeout %s: want more than 0s and at most %s", o.Timeout, mostStopTimeout)
	}
	facts, err := k.App(ctx, app)
	if err != nil {
		return err
	}
	switch v := facts.Verdict(); {
	case v != nil:
		fmt.Fprintf(s.Err, "%s is over already\n", app)
		if o.NoWait {
			return nil
		}
		if facts.Registry != nil && facts.Registry.Live > 0 {
			return awaitEnd(ctx, s, k, facts, *v)
		}
		fmt.Fprintf(s.Out, "%s: %s\n", app, exit.VerdictText(*v))
		return nil
	case facts.Registry == nil:
		if o.Save {
			fmt.Fprintf(s.Err, "%s: its registry does not answer, so nothing is saved first\n", app)
		}
		return stopAgents(ctx, s, k, facts, o.Grace)
	case facts.Registry.Interrupted():
		return fmt.Errorf("%s has no live agent that could stop: its run was interrupted and resumes when it is "+
			"launched again; muster forget %s removes it", app, app)
	}
	return o.stopRun(ctx, s, k, facts)
}

// mostStopTimeout is what the conductor takes.
const mostStopTimeout = 24 * time.Hour

// stopRun asks the conductor, waits for its word and for the end of everybody.
func (o StopOptions) stopRun(ctx context.Context, s console.Streams, k apps.Lookup, facts apps.Facts) error {
	c, err := k.Open(facts.Address)
	if err != nil {
		return err
	}
	defer c.Close()
	ask := registry.Ask{
		Kind: registry.AskStop, ID: strings.ToLower(rand.Text()), By: "stop",
		Args: map[string]string{"who": cmp.Or(k.Who, apps.Asker())},
	}
	if o.Reason != "" {
		ask.Args["who"] += " (" + o.Reason + ")"
	}
	if o.Grace != nil {
		ask.Args["grace"] = strconv.FormatFloat(o.Grace.Seconds(), 'f', -1, 64)
	}
	first := ""
	if o.Save {
		ask.Args["save"] = strconv.FormatFloat(o.Timeout.Seconds(), 'f', -1, 64)
		first = "to save, for " + o.Timeout.String() + " at most, and "
	}
	if err := k.Ask(ctx, facts.Address, facts.ID, ask); err != nil {
		return err
	}
	if o.NoWait {
		return nil
	}
	fmt.Fprintf(s.Err, "%s was asked %sto stop; waiting for its end (Ctrl-C leaves, the request stands)\n", facts.ID,
		first)
	saved := func() error { return nil }
	if o.Save {
		saved = followSave(ctx, s, k, facts, ask.ID)
	}
	asking, enough := context.WithCancel(ctx)
	var again sync.WaitGroup
	again.Go(func() { keepAsking(asking, s, c, facts, ask) })
	v, err := awaitVerdict(ctx, c, k, facts)
	enough()
	again.Wait()
	unsaved := saved()
	if err != nil {
		return errors.Join(err, unsaved)
	}
	return errors.Join(awaitEnd(ctx, s, k, facts, v), unsaved)
}

// keepAsking makes the request again whenever the registry has lost it, until ctx ends: a restored snapshot takes it
// away, and so does an agent that resumes a run in which nobody took part.
func keepAsking(ctx context.Context, s console.Streams, c apps.Registry, facts apps.Facts, a registry.Ask) {
	a.Run = facts.Registry.App.Run
	for wait.For(ctx, registry.DefaultTimes().Renew) == nil {
		// Where the registry does not answer now, the next look may be answered.
		if again, err := c.AskAgain(ctx, facts.ID, a); err == nil && again {
			fmt.Fprintf(s.Err, "%s was asked again to stop: its registry had lost the request\n", facts.ID)
		}
	}
}

// followSave watches the save of a stop while its verdict is waited for; what it gives tells of it.
func followSave(
	ctx context.Context, s console.Streams, k apps.Lookup, facts apps.Facts, id string,
) (tell func() error) {
	x := saving{
		streams: s, lookup: k, app: facts.ID, address: facts.Address, run: facts.Registry.App.Run,
		def:    apps.Definition(facts.Registry.App),
		before: facts.Registry.Directive, id: id,
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		x.beforeStop(ctx)
	}()
	return func() error {
		cancel()
		<-done
		last, over := context.WithTimeout(context.WithoutCancel(ctx), apps.Patience)
		defer over()
		// else as it was seen last
		if st, err := k.Status(last, x.address, x.app); err == nil && st.Directive.Run == x.run {
			x.look(st)
		}
		return x.tellStop()
	}
}

// awaitVerdict waits for the verdict. An embedded registry that ends meanwhile leaves it in a file, or
// there is none.
func awaitVerdict(ctx context.Context, c apps.Registry, k apps.Lookup, facts apps.Facts) (registry.Verdict, error) {
	waiting, cancel := context.WithCancel(ctx)
	defer cancel()
	var watch sync.WaitGroup
	defer watch.Wait()
	watch.Go(func() {
		if awaitNoSocket(waiting, k, facts.Address) {
			cancel()
		}
	})
	v, err := c.WaitVerdict(waiting, facts.ID, facts.Registry.App.Run)
	cancel()
	switch {
	case err == nil:
		return v, nil
	case ctx.Err() != nil:
		return v, ctx.Err()
	case waiting.Err() == nil || !errors.Is(err, context.Canceled) && !errors.Is(err, registry.ErrUnreachable):
		return v, apps.RegistryError(facts.Address, err)
	}
	left, err := k.OnHost(ctx, facts.ID)
	if err != nil {
		return v, err
	}
	if last := left.Verdict(); last != nil && last.Run == facts.Registry.App.Run {
		return *last, nil
	}
	return v, fmt.Errorf("%s: its registry ended before there was a verdict: the run was interrupted; muster status %s",
		facts.ID, facts.ID)
}

// awaitNoSocket waits until nobody serves the socket of an embedded registry; false: it has none, or ctx ended.
func awaitNoSocket(ctx context.Context, k apps.Lookup, address registry.Address) bool {
	if _, ok := address.Socket(); !ok || k.Page != nil {
		return false
	}
	return wait.Until(ctx, func() bool { return k.SocketGone(ctx, address) })
}

// endPatience is how much longer than the grace the end of all agents is waited for.
const endPatience = 30 * time.Second

// awaitEnd waits until no agent of the run is left, and the muster run that started them neither, and
// prints the verdict.
func awaitEnd(ctx context.Context, s console.Streams, k apps.Lookup, facts apps.Facts, v registry.Verdict) error {
	run, limit := facts.Registry.App.Run, endPatience
	_, socket := facts.Address.Socket()
	socket = socket && k.Page == nil
	live := facts.Registry.Live
	var left error
	over := func() bool {
		st, err := k.Status(ctx, facts.Address, facts.ID)
		switch {
		case errors.Is(err, registry.ErrNoApp) || errors.Is(err, registry.ErrUnreachable) && socket:
			live = 0 // forgotten, or the embedded registry ended as the last one
		case err != nil:
			return false
		case st.App.Run != run: // the next run has begun
			return true
		default:
			live = st.Live
			limit = max(limit, time.Duration(st.Directive.StopGrace*float64(time.Second))+endPatience)
		}
		return live == 0 && (facts.Local == nil || facts.Local.Run != run || !status.ProcessLives(facts.Local.Pid))
	}
	if !over() {
		waiting, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		if !wait.Until(waiting, over) {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			left = exit.With(exit.Timeout, fmt.Errorf("%s: %s left after %s: muster status %s says where", facts.ID,
				appdef.Counted(live, "agent"), limit, facts.ID))
		}
	}
	fmt.Fprintf(s.Out, "%s: %s\n", facts.ID, exit.VerdictText(v))
	return left
}

// stopAgents asks the agents of this host one by one; their registry cannot be asked.
func stopAgents(ctx context.Context, s console.Streams, k apps.Lookup, facts apps.Facts, grace *time.Duration) error {
	if !facts.Living() {
		return exit.With(exit.Registry, fmt.Errorf("%s: no agent on this host answers, and its registry %s neither; "+
			"nothing was stopped",
			facts.ID, cmp.Or(facts.Address, facts.Local.Registry)))
	}
	names := slices.Sorted(maps.Keys(facts.States))
	fmt.Fprintf(s.Err, "%s: stopping %s through their own sockets: no verdict is written\n", facts.ID,
		strings.Join(names, ", "))
	sockets := k.State.Sockets(facts.ID)
	var seconds *float64
	if grace != nil {
		seconds = new(grace.Seconds())
	}
	var errs []error
	for _, name := range names {
		if err := stopOne(ctx, sockets[name], seconds); err != nil {
			errs = append(errs, fmt.Errorf("stop %s/%s: %w", facts.ID, name, err))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if err := awaitGone(ctx, sockets); err != nil {
		return err
	}
	next := "it resumes when it is launched again"
	if facts.DataLost() {
		next = "with its data lost it begins anew when it is launched again"
	}
	fmt.Fprintf(s.Out, "%s: interrupted: %s stopped; %s\n", facts.ID, strings.Join(names, ", "), next)
	if _, oneHost := facts.Address.Socket(); oneHost || facts.Silent == nil {
		return nil
	}
	return exit.With(exit.Registry, fmt.Errorf("%s was not asked to stop: registry %s: %w; its agents on other hosts "+
		"continue, and a launcher may start those of this host again", facts.ID, facts.Address, facts.Silent))
}

func stopOne(ctx context.Context, path string, grace *float64) error {
	ctx, cancel := context.WithTimeout(ctx, apps.Patience)
	defer cancel()
	c := status.Dial(path)
	defer c.Close()
	return c.Stop(ctx, grace)
}

func awaitGone(ctx context.Context, sockets map[string]string) error {
	wait.Until(ctx, func() bool { return len(apps.AskSockets(ctx, sockets)) == 0 })
	return ctx.Err()
}
