package member

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/registry/conductor"
	"github.com/muster-agent/muster/registry/consul"
	"github.com/muster-agent/muster/shim/machine"
	"github.com/muster-agent/muster/shim/status"
)

// How often contact is looked at when there may be none, and while the peers are asked: evidence holds for seconds
// only.
const (
	fenceLook  = time.Second
	fenceClose = 250 * time.Millisecond
)

// Fence is the partition guard: it knows how long the registry has not answered, and from the claim on decides whether
// a process may run here. It asks the peers when the registry does not answer, and feeds the dead-man timer of the
// guard.
type Fence struct {
	cfg  fenceConfig
	due  chan struct{} // a round of questions is over, or the directive is another: look at once
	stop context.CancelFunc
	work sync.WaitGroup

	mu         sync.Mutex
	membership *consul.Membership // nil before the claim
	facts      conductor.Facts
	contact    conductor.Contact
	panel      panel
	round      round
	holding    bool // the log says that the registry is unreachable for the peers too

	timer deadManTimer

	tokenRefused atomic.Bool // the last answer of the registry was that
}

type fenceConfig struct {
	appID, inc string
	times      registry.Times
	loop       *machine.Agent
	log        *slog.Logger
	roster     func() (r registry.Roster, id string) // that was read last
	keep       func(r registry.Roster, text []byte, id string)
	dial       func(registry.Row) (*status.Client, error) // a client of a peer's agent
}

// errCutOff refuses a start, or explains an end.
var errCutOff = errors.New("the registry is unreachable from this host although peers reach it")

// watch begins with the claim and ends with close.
func (f *Fence) watch(ctx context.Context, membership *consul.Membership, facts conductor.Facts) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx)) // it outlives the effect that claims the index
	f.mu.Lock()
	f.membership, f.facts, f.stop = membership, facts, cancel
	f.mu.Unlock()
	f.work.Go(func() { f.run(ctx) })
}

func (f *Fence) close() {
	f.mu.Lock()
	stop := f.stop
	f.mu.Unlock()
	if stop != nil {
		stop()
	}
	f.work.Wait()
}

func (f *Fence) run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-f.due:
		}
		f.findPanel(ctx)
		f.followMovers(ctx)
		f.timer.extend(f)
		rows, event := f.look()
		if event != nil {
			f.cfg.loop.Tell(*event)
		}
		if rows != nil {
			f.work.Go(func() { f.ask(ctx, rows) })
		}
		timer.Reset(f.next())
	}
}

// lookNow makes run look at once.
func (f *Fence) lookNow() {
	select {
	case f.due <- struct{}{}:
	default: // run knows already
	}
}

// next is when to look again.
func (f *Fence) next() time.Duration {
	s := f.cfg.loop.State()
	switch {
	case !s.CutOff && f.sinceAnswer() >= f.cfg.times.Silent():
		return fenceClose
	case !f.inContact(), s.CutOff, s.Phase == machine.Fenced:
		return fenceLook
	}
	return f.cfg.times.Renew
}

// sinceAnswer is for how long no renewal was answered.
func (f *Fence) sinceAnswer() time.Duration {
	heard, now := f.membership.LastContact()
	return now - heard
}

// inContact tells that the registry has just answered a renewal: no other agent can have the index yet, unless a user
// has vouched for this agent's end, whose session is ended at once then. Nothing may rest on it that the successor
// cannot put right (a service that this agent's reap takes away from it: it registers that again with its next write).
func (f *Fence) inContact() bool { return f.sinceAnswer() < 2*f.cfg.times.Renew }

// look rules on the contact there is now, and returns whom to ask and what the machine must know.
func (f *Fence) look() ([]registry.Row, *machine.Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	standing, now := f.standing()
	s := f.cfg.loop.State()
	switch standing {
	case conductor.InTouch:
		if f.holding {
			f.holding = false
			f.cfg.log.Info("outage of the registry is over")
		}
		f.round.silent, f.round.asked = 0, 0
		if now-f.contact.Heard < 2*f.cfg.times.Renew && (s.CutOff || s.Phase == machine.Fenced) {
			return nil, &machine.Event{Kind: machine.Contact}
		}
	case conductor.Holding:
		if !f.holding {
			f.holding = true
			f.cfg.log.Warn("registry unreachable for the peers too, process goes on",
				"members_cut_off", f.round.silent, "of", f.round.asked, "at_most_until", f.until(now))
		}
		return f.begin(standing, now), nil
	case conductor.Asking:
		return f.begin(standing, now), nil
	case conductor.CutOff:
		if !s.CutOff {
			return nil, &machine.Event{Kind: machine.CutOff, Cause: f.why(now)}
		}
	}
	return nil, nil
}

// standing is asked with the mutex held.
func (f *Fence) standing() (conductor.Standing, time.Duration) {
	heard, now := f.membership.LastContact()
	f.contact.Heard = heard
	return f.contact.Standing(f.cfg.times, now), now
}

// why says why this member is cut off.
func (f *Fence) why(now time.Duration) string {
	unanswered := now - f.contact.Heard
	if lost := f.membership.Lost(); lost != "" {
		return fmt.Sprintf("the registry has lost this app's data %s ago (%s): muster adopt %s writes it again, "+
			"muster stop %s ends the run", unanswered.Round(time.Second), lost, f.cfg.appID, f.cfg.appID)
	}
	text := fmt.Sprintf("the registry has not answered for %s", unanswered.Round(time.Second))
	if f.tokenRefused.Load() {
		text = fmt.Sprintf("the registry refuses the token, and has renewed nothing for %s",
			unanswered.Round(time.Second))
	}
	switch {
	case unanswered >= f.cfg.times.Outage():
		return text + ", as long as an outage may last (--lost-mass)"
	case f.round.asked == 0:
		return text
	}
	return fmt.Sprintf("%s, and only %d of %d members are cut off from it", text, f.round.silent, f.round.asked)
}

// until is when the process is stopped although the registry answers no peer either.
func (f *Fence) until(now time.Duration) time.Time {
	return status.Stamp(time.Now().Add(f.contact.Heard + f.cfg.times.Outage() - now))
}

// Answer is what a peer gets that asks.
func (f *Fence) Answer() status.Silence {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.membership == nil {
		return status.Silence{Inc: f.cfg.inc}
	}
	s := f.cfg.loop.State()
	standing, now := f.standing()
	return status.Silence{
		Instance: s.Instance.String(), Inc: f.cfg.inc, Gen: s.Gen, Silence: (now - f.contact.Heard).Seconds(),
		Fenced: standing == conductor.CutOff || givesIn(s),
	}
}

// givesIn tells that a member stops its process because of the fence, or has stopped it. Once it is in contact again
// its answer counts as evidence, though nothing may run yet.
func givesIn(s machine.State) bool {
	return s.CutOff || s.Phase == machine.Fenced || s.Phase == machine.Stopping && s.Reason == machine.ForFence
}

// Outage is what status shows; nil while the registry answers.
func (f *Fence) Outage() *status.Outage {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.membership == nil {
		return nil
	}
	s := f.cfg.loop.State()
	standing, now := f.standing()
	if standing == conductor.InTouch && !s.CutOff && s.Phase != machine.Fenced {
		return nil
	}
	return &status.Outage{
		Since: status.Stamp(time.Now().Add(f.contact.Heard - now)), CutOff: f.round.silent, Members: f.round.asked,
		Fenced: givesIn(s), Until: f.until(now),
	}
}
