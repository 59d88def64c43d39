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

// tickets keep a file of the process's own, with a ticket or tokens, as fresh as the agent's. Libraries read it again
// for each connection.
type tickets struct {
	log    *slog.Logger
	what   string
	get    func() (text []byte, until time.Time, err error) // until is when it ends; zero: nobody knows
	logsIn bool                                             // what it gets is new each time
	file   string                                           // an absolute path in the folder
	folder func() (files.UserFolder, error)                 // the instance's

	text  string    // written last
	again time.Time // when to log in again; zero: the agent's own file is copied
	told  string    // the last error that was logged
}

// GiveTickets gives the process its ticket cache and its token file, where clusters ask for Kerberos, and keeps them
// fresh until Close. A process may start without a ticket: the log says so, unless there are tokens, and the manager
// keeps trying.
func (m *Manager) GiveTickets(p plan.Plan) {
	if p.Hadoop == nil || p.Hadoop.Tickets == "" {
		return
	}
	config := m.cfg.Stores.Kerberos()
	own := tickets{log: m.cfg.Log, folder: func() (files.UserFolder, error) { return m.instanceFolder(p) }}
	cache, tokens := own, own
	cache.what, cache.file, cache.get, cache.logsIn = "ticket", p.Hadoop.Tickets, config.Tickets, config.Keytab != ""
	all := []*tickets{&cache}
	if p.Hadoop.Tokens != "" {
		tokens.what, tokens.file, tokens.get = "token file", p.Hadoop.Tokens, tokenFile
		all = append(all, &tokens)
		if !cache.logsIn { // tokens do without
			cache.told = noTicket(config)
		}
	}
	for _, one := range all {
		one.renew()
		m.tasks.Go(func() { one.keep(m.ctx) })
	}
}

// tokenFile is the agent's.
func tokenFile() (text []byte, until time.Time, err error) {
	text, err = hdfs.TokenFile()
	return text, until, err
}

// noTicket is why there is none now.
func noTicket(config hdfs.Config) string {
	if _, _, err := config.Tickets(); err != nil {
		return err.Error()
	}
	return ""
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
		t.log.Warn("nothing new for the process", "wanted", t.what, "err", err)
	}
}

func (t *tickets) write() error {
	text, end, err := t.get()
	if err != nil {
		return err
	}
	if t.logsIn {
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
	if t.text != "" && !end.IsZero() {
		t.log.Info("ticket of the process renewed", "until", status.Stamp(end))
	}
	t.text, t.told = string(text), ""
	return nil
}

// renewal is when to log in again: after three quarters of a ticket's life.
func renewal(now, end time.Time) time.Time { return now.Add(max(end.Sub(now), 0) * 3 / 4) }
