package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/registry/conductor"
	"github.com/muster-agent/muster/registry/consul"
	"github.com/muster-agent/muster/shim/files"
	"github.com/muster-agent/muster/shim/machine"
	"github.com/muster-agent/muster/shim/plan"
	"github.com/muster-agent/muster/shim/sandbox"
	"github.com/muster-agent/muster/shim/status"
)

// How often contact is looked at when there may be none, and while the peers are asked: evidence holds for seconds only.
const (
	fenceLook  = time.Second
	fenceClose = 250 * time.Millisecond
)

// fence is what an agent knows of its contact with the registry: from its claim on it decides whether a process may
// run here, asks the peers when nothing is heard, and winds the guard's dead-man timer up.
type fence struct {
	*agent
	seat  *consul.Seat
	facts conductor.Facts
	over  chan struct{} // an asking is over: the next may have to begin at once

	mu      sync.Mutex
	contact conductor.Contact
	panel   conductor.Panel
	roster  string    // that the panel is of
	follow  time.Time // when to read next where those of it answer who go by names
	silent  int       // at the last asking, of asked
	asked   int
	asking  bool
	held    bool // that the registry is away was said
	fired   bool // the guard has ended the process by itself

	feeding sync.Mutex // one at a time tells the guard, and has the field below
	armed   feeder     // the guard of the process; nil: none runs
}

// feeder is a guard's dead-man timer: it ends what the guard runs at a moment of CLOCK_BOOTTIME; 0 stops it.
type feeder interface {
	Feed(end time.Duration) error
}

// errCutOff refuses a start, or explains an end.
var errCutOff = errors.New("nothing was heard of the registry for too long, and the peers are not cut off as well")

// watchContact begins with the claim and ends with the agent.
func (a *agent) watchContact(seat *consul.Seat, facts conductor.Facts) {
	f := &fence{agent: a, seat: seat, facts: facts, over: make(chan struct{}, 1)}
	a.mu.Lock()
	a.fence = f
	a.mu.Unlock()
	ctx, cancel := context.WithCancel(context.Background())
	var work sync.WaitGroup
	work.Go(func() { f.run(ctx, &work) })
	a.atEnd(func() {
		cancel()
		work.Wait()
	})
}

func (a *agent) currentFence() *fence {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.fence
}

func (f *fence) run(ctx context.Context, work *sync.WaitGroup) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-f.over:
		}
		f.know(ctx)
		f.followMovers(ctx)
		f.wind()
		rows, said := f.look()
		if said != nil {
			f.loop.Tell(*said)
		}
		if rows != nil {
			work.Go(func() { f.ask(ctx, rows) })
		}
		timer.Reset(f.next())
	}
}

// next is when to look again.
func (f *fence) next() time.Duration {
	s := f.state()
	switch {
	case !s.CutOff && f.silence() >= f.times.Silent():
		return fenceClose
	case !f.heard(), s.CutOff, s.Phase == machine.Fenced:
		return fenceLook
	}
	return f.times.Renew
}

func (f *fence) state() machine.State { return f.loop.State() }

func (f *fence) silence() time.Duration {
	heard, now := f.seat.Heard()
	return now - heard
}

// heard tells that the registry has just answered a renewal: nobody else can have the index yet, unless somebody has vouched for
// this agent's end, whose session is ended at once then. Nothing may rest on it that the successor cannot put right (a service that is
// taken away from it by this one's reap: it registers that again with its next word).
func (f *fence) heard() bool { return f.silence() < 2*f.times.Renew }

// know keeps whom to ask. Members have read the roster to start; a service is not in it and reads it for this.
func (f *fence) know(ctx context.Context) {
	d := f.seat.Directive()
	if d.Act != registry.ActRun || d.Roster.ID == "" {
		return // the last one's members run still, or nobody does
	}
	if f.knows(d) || !f.state().Policy.Service || !f.heard() {
		return // a member reads it in its own time, and nobody can while the registry is away
	}
	ctx, cancel := context.WithTimeout(ctx, f.times.Renew)
	defer cancel()
	roster, _, err := f.seat.Roster(ctx, d.Roster)
	if err != nil {
		f.log.Debug("read the roster to know the peers", "err", err)
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sit(d, roster)
}

// knows tells that the panel is of the directive's roster; one that the agent has is taken, whatever is heard by now.
func (f *fence) knows(d registry.Directive) bool {
	f.agent.mu.Lock()
	roster := f.agent.roster
	f.agent.mu.Unlock()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.roster != d.Roster.ID && roster.Gen == d.Gen && roster.Run == d.Run {
		f.sit(d, roster)
	}
	return f.roster == d.Roster.ID
}

// sit is called with the mutex held.
func (f *fence) sit(d registry.Directive, roster registry.Roster) {
	f.panel, f.roster = conductor.NewPanel(f.facts, roster, f.seat.Instance()), d.Roster.ID
	f.follow = time.Now().Add(rand.N(moversEvery)) // not all at once
}

// moversEvery is how often it is read where members answer whose rows do not say it.
const moversEvery = 30 * time.Second

// followMovers reads that while the registry answers: in an outage it is too late.
func (f *fence) followMovers(ctx context.Context) {
	f.mu.Lock()
	movers, due := f.panel.Movers(f.id.appID), !time.Now().Before(f.follow)
	f.mu.Unlock()
	if len(movers) == 0 || !due || !f.heard() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, f.times.Renew)
	defer cancel()
	records, err := f.seat.Members(ctx, movers)
	if err != nil {
		f.log.Debug("read where the peers answer", "err", err)
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.panel, f.follow = f.panel.At(records), time.Now().Add(moversEvery)
}

// look rules on the contact there is now, and returns whom to ask and what the machine must know.
func (f *fence) look() ([]registry.Row, *machine.Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	standing, now := f.standing()
	s := f.state()
	switch standing {
	case conductor.InTouch:
		if f.held {
			f.held = false
			f.log.Info("the registry was away for the peers too, and is back")
		}
		f.silent, f.asked = 0, 0
		if now-f.contact.Heard < 2*f.times.Renew && (s.CutOff || s.Phase == machine.Fenced) {
			return nil, &machine.Event{Kind: machine.Contact}
		}
	case conductor.Holding:
		if !f.held {
			f.held = true
			f.log.Warn("the registry is away for the peers too, the process goes on", "silent", f.silent, "of", f.asked, "at_most_until", f.until(now))
		}
		return f.round(standing, now), nil
	case conductor.Asking:
		return f.round(standing, now), nil
	case conductor.CutOff:
		if !s.CutOff {
			return nil, &machine.Event{Kind: machine.CutOff, Cause: f.why(now)}
		}
	}
	return nil, nil
}

// standing is asked with the mutex held.
func (f *fence) standing() (conductor.Standing, time.Duration) {
	heard, now := f.seat.Heard()
	f.contact.Heard = heard
	return f.contact.Standing(f.times, now), now
}

func (f *fence) why(now time.Duration) string {
	silence := now - f.contact.Heard
	if silence >= f.times.Outage() {
		return fmt.Sprintf("nothing heard of the registry for %s, as long as an outage may last (--lost-mass)", silence.Round(time.Second))
	}
	if f.asked == 0 {
		return fmt.Sprintf("nothing heard of the registry for %s", silence.Round(time.Second))
	}
	return fmt.Sprintf("nothing heard of the registry for %s, and only %d of %d members hear nothing either", silence.Round(time.Second), f.silent, f.asked)
}

// until is when the process is stopped although all hear nothing.
func (f *fence) until(now time.Duration) time.Time {
	return stamp(time.Now().Add(f.contact.Heard + f.times.Outage() - now))
}

func (f *fence) round(s conductor.Standing, now time.Duration) []registry.Row {
	if f.asking || !f.contact.Due(s, now) {
		return nil
	}
	f.asking = true
	return append([]registry.Row{}, f.panel.Rows()...)
}

// ask asks all at the same moment, so that those who answer that they hear nothing do so at one. It waits for all of them, and what
// they show counts as soon as it is shown: one whose host drops packets holds nobody up.
func (f *fence) ask(ctx context.Context, rows []registry.Row) {
	_, began := f.seat.Heard()
	bounded, cancel := context.WithTimeout(ctx, registry.AskRound)
	defer cancel()
	var answers []conductor.Silence // with the mutex held
	var work sync.WaitGroup
	for _, row := range rows {
		work.Go(func() {
			s, err := f.silenceOf(bounded, row)
			if err != nil {
				f.log.Debug("ask a peer how long it hears nothing", "peer", row.Instance.String(), "err", err)
				return
			}
			f.mu.Lock()
			defer f.mu.Unlock()
			answers = append(answers, s)
			f.weigh(began, answers, false)
		})
	}
	work.Wait()
	f.mu.Lock()
	f.weigh(began, answers, true)
	f.asking, f.contact.Asked = false, began
	f.mu.Unlock()
	select {
	case f.over <- struct{}{}:
	default: // it is known
	}
}

// weigh takes what the answers to an asking show so far; all of them are in at its end. It is called with the mutex held.
func (f *fence) weigh(began time.Duration, answers []conductor.Silence, all bool) {
	silent, of, shown := f.panel.Evidence(f.times, answers)
	if shown {
		f.contact.Evidence = began
	}
	if shown || all {
		f.silent, f.asked = silent, of
	}
}

func (f *fence) silenceOf(ctx context.Context, row registry.Row) (conductor.Silence, error) {
	c, err := f.wayTo(row)
	if err != nil {
		return conductor.Silence{}, err
	}
	defer c.Close()
	s, err := c.Silence(ctx)
	if err != nil {
		return conductor.Silence{}, err
	}
	in, err := registry.ParseInstance(s.Instance)
	return conductor.Silence{Instance: in, Inc: s.Inc, Gen: s.Gen, For: seconds(s.Silence), Fenced: s.Fenced}, err
}

// wayTo is a client of a peer's agent: by its socket on this host, else by its address with the run's token. Who listens for
// nobody is on this machine, whatever its row says: it may go by a name.
func (a *agent) wayTo(row registry.Row) (*status.Client, error) {
	if files.IsSocket(row.API) && (row.Peer == "" || plan.Hosts([]registry.Row{row})[0] == a.alloc.Host) {
		return status.Dial(row.API), nil
	}
	if row.Peer == "" {
		return nil, fmt.Errorf("%s is on another host, and its agent does not listen there", row.Instance)
	}
	return status.DialPeer(row.Peer, a.seatNow().Token()), nil
}

// arm begins with a start: from here on the guard ends what it runs when this agent does not say in time that it may
// go on. It refuses while the agent is cut off, whatever the machine knows of that.
func (f *fence) arm(guard feeder) error {
	f.feeding.Lock()
	defer f.feeding.Unlock()
	f.mu.Lock()
	f.fired = false
	f.mu.Unlock()
	f.armed = guard
	if !f.feed() {
		f.armed = nil
		return errCutOff
	}
	return nil
}

// wind has the guard know until when the process may go on.
func (f *fence) wind() {
	f.feeding.Lock()
	defer f.feeding.Unlock()
	f.feed()
}

// feed is called by who feeds, and without the mutex: a guard that does not read may keep it for long, and peers and people ask
// meanwhile. False: it is cut off, and no time is left.
func (f *fence) feed() bool {
	f.mu.Lock()
	standing, now := f.standing()
	end := f.contact.End(f.times)
	f.mu.Unlock()
	if end <= now || standing == conductor.CutOff {
		return false
	}
	if f.armed == nil {
		return true
	}
	if err := f.armed.Feed(end); err != nil && !errors.Is(err, sandbox.ErrGone) {
		f.log.Warn("wind the dead-man timer up", "err", err)
	}
	return true
}

// disarm follows the proof that nothing of an attempt is left.
func (f *fence) disarm() {
	f.feeding.Lock()
	defer f.feeding.Unlock()
	if f.armed == nil {
		return
	}
	if err := f.armed.Feed(0); err != nil && !errors.Is(err, sandbox.ErrGone) {
		f.log.Warn("stop the dead-man timer", "err", err)
	}
	f.armed = nil
}

// deadMan is the guard's word that its timer ran out.
func (f *fence) deadMan() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fired = true
}

// explains tells that the guard's timer has ended the process.
func (f *fence) explains() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.fired
}

// answer is what a peer is told.
func (f *fence) answer() status.Silence {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.state()
	standing, now := f.standing()
	return status.Silence{
		Instance: s.Instance.String(), Inc: f.inc, Gen: s.Gen, Silence: (now - f.contact.Heard).Seconds(),
		Fenced: standing == conductor.CutOff || givesIn(s),
	}
}

// givesIn tells that a member stops for the fence, or has; once it is in touch again its silence is evidence as anybody's is,
// though nothing may run yet.
func givesIn(s machine.State) bool {
	return s.CutOff || s.Phase == machine.Fenced || s.Phase == machine.Stopping && s.Reason == machine.ForFence
}

// outage is what people are told; nil while the registry is heard.
func (f *fence) outage() *status.Outage {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.state()
	standing, now := f.standing()
	if standing == conductor.InTouch && !s.CutOff && s.Phase != machine.Fenced {
		return nil
	}
	return &status.Outage{
		Since: stamp(time.Now().Add(f.contact.Heard - now)), Silent: f.silent, Members: f.asked,
		Fenced: givesIn(s), Until: f.until(now),
	}
}
