package manager

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/muster-agent/muster/shim/files"
	"github.com/muster-agent/muster/shim/plan"
	"github.com/muster-agent/muster/shim/status"
	"github.com/muster-agent/muster/shim/store/hdfs"
)

// ticketsPoll is how often it is looked whether the operator has renewed the agent's ticket.
const ticketsPoll = 5 * time.Second

// tickets keep a process's own ticket cache as fresh as the agent's. Kerberos' libraries read it anew for each
// connection.
type tickets struct {
	log     *slog.Logger
	config  hdfs.Config
	workDir string
	file    string          // in workDir, as an absolute path
	owner   *plan.UserFacts // nil: the agent's own user

	text  string    // that was written last
	again time.Time // when to log in anew; zero: the agent's own cache is copied
	told  string    // the last complaint
}

// GiveTickets gives the process its ticket cache, where clusters ask for one, and keeps it fresh until close. The
// process may do without: that there is no ticket is told, and looked after.
func (m *Manager) GiveTickets(p plan.Plan) {
	if p.Hadoop == nil || p.Hadoop.Tickets == "" {
		return
	}
	t := &tickets{
		log: m.cfg.Log, config: m.cfg.Stores.Kerberos(), workDir: m.cfg.WorkDir, file: p.Hadoop.Tickets,
		owner: m.cfg.Stores.User(),
	}
	t.renew()
	m.tasks.Go(func() { t.keep(m.ctx) })
}

// keep renews until the end of ctx.
func (t *tickets) keep(ctx context.Context) {
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
	text, end, err := t.config.Tickets()
	if err != nil {
		return err
	}
	if t.config.Keytab != "" {
		t.again = renewal(time.Now(), end)
	}
	if string(text) == t.text {
		return nil
	}
	work, err := files.As(t.owner).Below(t.workDir)
	if err != nil {
		return err
	}
	err = work.Write(t.file, string(text), true)
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
