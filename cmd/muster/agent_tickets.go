package main

import (
	"context"
	"errors"
	"time"

	"github.com/muster-agent/muster/shim/files"
	"github.com/muster-agent/muster/shim/plan"
	"github.com/muster-agent/muster/shim/status"
)

// ticketsPoll is how often it is looked whether the operator has renewed the agent's ticket.
const ticketsPoll = 5 * time.Second

// tickets keep a process's own ticket cache as fresh as the agent's. Kerberos' libraries read it anew for each connection.
type tickets struct {
	*agent

	plan  plan.Plan
	text  string    // that was written last
	again time.Time // when to log in anew; zero: the agent's own cache is copied
	told  string    // the last complaint
}

// keepTickets renews until the end of ctx.
func (a *agent) keepTickets(ctx context.Context, t *tickets) {
	if t == nil {
		return
	}
	tick := time.NewTicker(ticketsPoll)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			t.renew()
		}
	}
}

// giveTickets gives the process its ticket cache, where clusters ask for one. It may do without: that there is no ticket is
// told, and looked after.
func (r stageRoom) giveTickets(p plan.Plan) {
	if p.Hadoop == nil || p.Hadoop.Tickets == "" {
		return
	}
	t := &tickets{agent: r.agent, plan: p}
	t.renew()
	r.mu.Lock()
	r.tickets = t
	r.mu.Unlock()
}

// renew writes the cache where there is a newer ticket.
func (t *tickets) renew() {
	if now := time.Now(); !t.again.IsZero() && now.Before(t.again) {
		return
	}
	if err := t.write(); err != nil && err.Error() != t.told {
		t.told = err.Error()
		t.log.Warn("ticket for the process", "err", err)
	}
}

func (t *tickets) write() error {
	c := t.hadoop.Config("")
	if c.Keytab == "" {
		c.CCache = t.envGiven["KRB5CCNAME"]
	}
	text, end, err := c.Tickets()
	if err != nil {
		return err
	}
	if c.Keytab != "" {
		t.again = renewal(time.Now(), end)
	}
	if string(text) == t.text {
		return nil
	}
	work, err := files.As(t.user).Below(t.workDir)
	if err != nil {
		return err
	}
	err = work.Write(t.plan.Hadoop.Tickets, string(text), true)
	if err := errors.Join(err, work.Close()); err != nil {
		return err
	}
	if t.text != "" {
		t.log.Info("ticket for the process is renewed", "until", status.Stamp(end))
	}
	t.text, t.told = string(text), ""
	return nil
}

// renewal is when to log in anew: when three quarters of a ticket's life are over.
func renewal(now, end time.Time) time.Time { return now.Add(max(end.Sub(now), 0) * 3 / 4) }
