package member

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/registry/conductor"
)

// panel are the peers that are asked, and where they answer.
type panel struct {
	conductor.Panel
	roster string    // whose peers they are
	follow time.Time // when to read next where the members answer that go by names
}

// round is one round of questions to the panel.
type round struct {
	busy          bool
	silent, asked int // at the last round: so many of the members that were asked get no answer of the registry either
}

// moversEvery is how often the records are read of members whose rows do not say where they answer.
const moversEvery = 30 * time.Second

// findPanel keeps whom to ask. Members have read the roster to start, and read it again here when it was written again
// for the generation that they run in; a service is not in it and reads it for this.
func (f *Fence) findPanel(ctx context.Context) {
	d := f.membership.Directive()
	if d.Act != registry.ActRun || d.Roster.ID == "" {
		return // the members of the last roster still run, or no process does
	}
	known, newer := f.knows(d)
	if known || !newer && !f.cfg.loop.State().Policy.Service || !f.inContact() {
		return // a member reads it in its own time, and nobody can while the registry is unreachable
	}
	ctx, cancel := context.WithTimeout(ctx, f.cfg.times.Renew)
	defer cancel()
	roster, text, err := readRoster(ctx, f.membership, d.Roster)
	if err != nil {
		f.cfg.log.Debug("roster not read, peers are unknown", "err", err)
		return
	}
	if newer {
		f.cfg.keep(roster, text, d.Roster.ID)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.empanel(d, roster)
}

// knows tells that the panel is of the directive's roster; one that the agent has is taken, even if the registry does
// not answer by now. newer: the agent has an earlier roster of the same generation.
func (f *Fence) knows(d registry.Directive) (known, newer bool) {
	roster, id := f.cfg.roster()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.panel.roster != d.Roster.ID && id == d.Roster.ID {
		f.empanel(d, roster)
	}
	known = f.panel.roster == d.Roster.ID
	return known, !known && roster.Gen == d.Gen && roster.Run == d.Run
}

// empanel makes a roster's peers the panel, with the mutex held.
func (f *Fence) empanel(d registry.Directive, roster registry.Roster) {
	f.panel = panel{
		Panel: conductor.NewPanel(f.facts, roster, f.membership.Instance()), roster: d.Roster.ID,
		follow: time.Now().Add(rand.N(moversEvery)), // not all at once
	}
}

// followMovers reads where members answer whose rows do not say it, while the registry answers: in an outage it is too
// late.
func (f *Fence) followMovers(ctx context.Context) {
	f.mu.Lock()
	movers, due := f.panel.Movers(f.cfg.appID), !time.Now().Before(f.panel.follow)
	f.mu.Unlock()
	if len(movers) == 0 || !due || !f.inContact() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, f.cfg.times.Renew)
	defer cancel()
	records, err := f.membership.Members(ctx, movers)
	if err != nil {
		f.cfg.log.Debug("addresses of peers not read", "err", err)
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.panel.Panel, f.panel.follow = f.panel.At(records), time.Now().Add(moversEvery)
}

// begin returns whom to ask now; nil: nobody. It is called with the mutex held.
func (f *Fence) begin(s conductor.Standing, now time.Duration) []registry.Row {
	if f.round.busy || !f.contact.Due(s, now) {
		return nil
	}
	f.round.busy = true
	return append([]registry.Row{}, f.panel.Rows()...)
}

// ask asks all at the same moment, so that those who answer that they hear nothing do so at one. It waits for all of
// them, and what they show counts as soon as it is shown: a peer whose host drops packets delays nobody.
func (f *Fence) ask(ctx context.Context, rows []registry.Row) {
	_, began := f.membership.LastContact()
	bounded, cancel := context.WithTimeout(ctx, registry.AskRound)
	defer cancel()
	var answers []conductor.Silence // with the mutex held
	var work sync.WaitGroup
	for _, row := range rows {
		work.Go(func() {
			s, err := f.askPeer(bounded, row)
			if err != nil {
				f.cfg.log.Debug("peer not asked about the registry", "peer", row.Instance.String(), "err", err)
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
	f.round.busy, f.contact.Asked = false, began
	f.mu.Unlock()
	f.lookNow()
}

// weigh takes what the answers of a round show so far; all of them are in at its end. It is called with the mutex held.
func (f *Fence) weigh(began time.Duration, answers []conductor.Silence, all bool) {
	silent, of, shown := f.panel.Evidence(f.cfg.times, answers)
	if shown {
		f.contact.Evidence = began
	}
	if shown || all {
		f.round.silent, f.round.asked = silent, of
	}
}

func (f *Fence) askPeer(ctx context.Context, row registry.Row) (conductor.Silence, error) {
	c, err := f.cfg.dial(row)
	if err != nil {
		return conductor.Silence{}, err
	}
	defer c.Close()
	s, err := c.Silence(ctx)
	if err != nil {
		return conductor.Silence{}, err
	}
	in, err := registry.ParseInstance(s.Instance)
	lasts := time.Duration(s.Silence * float64(time.Second))
	return conductor.Silence{Instance: in, Inc: s.Inc, Gen: s.Gen, For: lasts, Fenced: s.Fenced}, err
}
