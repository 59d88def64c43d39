package consul

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/registry/conductor"
)

var (
	// errDone: the lock can be released.
	errDone = errors.New("lock released")
	// errLockLost: this agent does not conduct any more.
	errLockLost = errors.New("the directive's lock is lost")
)

// conducting drives conductor.State: it keeps the view, carries out the effects, and steps again after each. A new one
// starts with an empty view and new timers.
type conducting struct {
	*gang
	session string
	state   conductor.State
	view    conductor.View
	wake    time.Time // when Step wants to be called again; zero: never
	missing []registry.Loss
	last    []registry.Instance // members for which the barrier waits, as last logged
	watches watches
	b       backoff
	refused refusals
	silent  time.Time // since when the registry gives this conductor no answer; zero: it does
}

func newConducting(g *gang, b conductorLock) *conducting {
	c := &conducting{gang: g, session: b.session, state: conductor.New(g.me.Facts, g.me.Member.Inc)}
	c.state.Came, c.state.Handed = g.since(), b.handed
	c.watches.init()
	return c
}

func (c *conducting) close() {
	c.reportMissing(nil)
	c.watches.close()
}

// run steps until the lock is lost (errLockLost), or no conductor is needed (errDone).
func (c *conducting) run(ctx context.Context) error {
	c.watches.start(ctx, c.gang)
	c.watches.work.Go(func() { c.publishCommon(ctx) })
	if err := c.reset(); err != nil {
		return err
	}
	for {
		c.watches.follow(ctx, c.gang, c.view.Directive)
		begun := time.Now()
		more, err := c.step(ctx)
		switch {
		case ctx.Err() != nil:
			return errLockLost
		case errors.Is(err, errDone), errors.Is(err, errLockLost):
			return err
		case err != nil:
			if !isRefusal(err) {
				c.unanswered(begun)
			}
			if err := c.recover(ctx, err); err != nil {
				return err
			}
			continue
		}
		c.b.reset()
		if more {
			select {
			case <-c.stepDown:
				return errDone
			default:
			}
			continue
		}
		c.noteOpen()
		if err := c.await(ctx); err != nil {
			return err
		}
	}
}

// noteOpen tells the watch which members the barrier lacks, and the operator when it is the last of them.
func (c *conducting) noteOpen() {
	open := c.state.Open(c.view)
	c.watches.awaits(open)
	if len(open) == 0 || len(open) > fewOpen || slices.Equal(open, c.last) {
		return
	}
	c.last = open
	c.log.Info("barrier waits for the last members", "generation", c.view.Directive.Gen, "missing", fmt.Sprint(open))
}

// step asks the conductor once and carries out its effects. more tells that something was read or written since.
func (c *conducting) step(ctx context.Context) (more bool, err error) {
	var effects []conductor.Effect
	c.state, effects = c.state.Step(time.Now(), c.view)
	c.view.Trouble = 0
	c.wake = time.Time{}
	c.reportMissing(c.state.Losses())
	for len(effects) > 0 {
		e := effects[0]
		if w, ok := e.(conductor.Wake); ok {
			if c.wake.IsZero() || w.At.Before(c.wake) {
				c.wake = w.At
			}
			effects = effects[1:]
			continue
		}
		before := c.view.DirectiveIndex
		var err error
		if lost := leadingLosses(effects); len(lost) > 0 {
			effects = effects[len(lost):]
			err = c.declareLost(ctx, lost)
		} else {
			effects = effects[1:]
			err = c.do(ctx, e)
		}
		if err != nil {
			return true, err
		}
		c.answered()
		if writes(e) {
			c.refused = refusals{}
		}
		more = true
		if c.view.DirectiveIndex != before {
			return true, nil // the other effects were decided from the old directive
		}
	}
	return more, nil
}

// reportMissing reports which members this conductor waits for, whenever that changes.
func (c *conducting) reportMissing(losses []registry.Loss) {
	if !slices.Equal(c.missing, losses) {
		c.missing = losses
		c.mail.send(registry.Missing{Losses: losses})
	}
}

// unanswered notes that a request which began then got no answer.
func (c *conducting) unanswered(begun time.Time) {
	if c.silent.IsZero() || begun.Before(c.silent) {
		c.silent = begun
	}
}

// answered ends a silence of the registry. The next step is told how long it was.
func (c *conducting) answered() {
	if !c.silent.IsZero() {
		c.view.Trouble += time.Since(c.silent)
		c.silent = time.Time{}
	}
}

// writes tells whether an effect changes the registry.
func writes(e conductor.Effect) bool {
	switch e.(type) {
	case conductor.ReadReady, conductor.ReadRecords, conductor.ReadRoster:
		return false
	}
	return true
}

func (c *conducting) do(ctx context.Context, e conductor.Effect) error {
	switch e := e.(type) {
	case conductor.ReadReady:
		return c.readReady(ctx)
	case conductor.ReadRecords:
		return c.readRecords(ctx, e)
	case conductor.ReadRoster:
		return c.readRoster(ctx, e.Ref)
	case conductor.Seal:
		return c.seal(ctx, e)
	case conductor.Rebuild:
		return c.direct(ctx, e.Index, e.Directive)
	case conductor.Release:
		return c.direct(ctx, e.Index, e.Directive)
	case conductor.Retarget:
		return c.direct(ctx, e.Index, e.Directive)
	case conductor.Begin:
		return c.direct(ctx, e.Index, e.Directive)
	case conductor.End:
		return c.end(ctx, e)
	case conductor.DropAsk:
		return c.dropAsk(ctx, e.Ask)
	case conductor.CleanUp:
		return c.cleanUp(ctx, e.KeepRoster)
	case conductor.StepDown:
		return errDone
	}
	return fmt.Errorf("conduct: unknown effect %T", e)
}

// recover follows an effect that was refused, failed, or whose result is unknown: it rereads the directive with
// consistency, and then everything else.
func (c *conducting) recover(ctx context.Context, why error) error {
	rest := c.refused.rest(why)
	if !isRefusal(why) || rest > 0 {
		c.log.Warn("conducting delayed", "err", why)
	}
	for {
		select {
		case <-time.After(max(c.b.next(), rest)):
		case <-c.stepDown:
			return errDone
		case <-ctx.Done():
			return errLockLost
		}
		begun := time.Now()
		err := c.refresh(ctx)
		if err == nil {
			c.answered()
			return c.reset()
		}
		if ctx.Err() != nil {
			return errLockLost
		}
		c.unanswered(begun)
	}
}

// reset starts with an empty view of the newest directive.
func (c *conducting) reset() error {
	last, lost, _ := c.directive.now()
	if lost || last == nil || last.session != c.session {
		return errLockLost
	}
	c.view = conductor.View{
		Directive: last.directive, DirectiveIndex: last.index, Asks: c.view.Asks, Trouble: c.view.Trouble,
	}
	return nil
}

// await waits for something that no step has seen.
func (c *conducting) await(ctx context.Context) error {
	_, _, changed := c.directive.now()
	if last, lost, _ := c.directive.now(); lost || last.session != c.session {
		return errLockLost
	}
	var wake <-chan time.Time
	if !c.wake.IsZero() {
		t := time.NewTimer(time.Until(c.wake))
		defer t.Stop()
		wake = t.C
	}
	select {
	case <-ctx.Done():
		return errLockLost
	case <-c.stepDown:
		return errDone
	case <-wake:
	case <-changed:
		return c.follow()
	case r := <-c.watches.ready:
		c.answered()
		if r.gen == c.view.Directive.Gen {
			c.view.Ready, c.view.ReadyGen, c.view.ReadyAt = r.set, r.gen, r.at
		}
	case a := <-c.watches.asks:
		c.view.Asks = a
	case since := <-c.watches.trouble:
		c.unanswered(since)
	}
	return nil
}

// follow handles a directive that this agent has not written. No other conductor writes while this agent holds the
// lock: either it accepts the change, or it finds that the lock is lost.
func (c *conducting) follow() error {
	last, lost, _ := c.directive.now()
	switch {
	case lost || last.session != c.session:
		return errLockLost
	case last.index != c.view.DirectiveIndex:
		return c.reset()
	}
	return nil
}
