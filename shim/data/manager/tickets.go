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

// ticketsPoll is how often the manager looks whether the operator has renewed the agent's ticket.
const ticketsPoll = 5 * time.Second

// tickets keep the process's own ticket cache as fresh as the agent's. Kerberos libraries read it again for each
// connection.
type tickets struct {
	log    *slog.Logger
	config hdfs.Config
	file   string                           // an absolute path in the folder
	folder func() (files.UserFolder, error) // the instance's

	text  string    // written last
	again time.Time // when to log in again; zero: the agent's own cache is copied
	told  string    // the last error that was logged
}

// GiveTickets gives the process its ticket cache, where clusters ask for one, and keeps it fresh until Close. A process
// may start without a ticket: the log says so, and the manager keeps trying.
func (m *Manager) GiveTickets(p plan.Plan) {
	if p.Hadoop == nil || p.Hadoop.Tickets == "" {
		return
	}
	t := &tickets{
		log: m.cfg.Log, config: m.cfg.Stores.Kerberos(), file: p.Hadoop.Tickets,
		folder: func() (files.UserFolder, error) { return m.instanceFolder(p) },
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
		t.log.Warn("no ticket for the process", "err", err)
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
	folder, err := t.folder()
	if err != nil {
		return err
	}
	name, err := folder.Rel(t.file)
	if err == nil {
		err = folder.Write(name, string(text), 0o600)
	}
	if err := errors.Join(err, folder.Close()); err != nil {
		return err
	}
	if t.text != "" {
		t.log.Info("ticket of the process renewed", "until", status.Stamp(end))
	}
	t.text, t.told = string(text), ""
	return nil
}

// renewal is when to log in again: after three quarters of a ticket's life.
func renewal(now, end time.Time) time.Time { return now.Add(max(end.Sub(now), 0) * 3 / 4) }
