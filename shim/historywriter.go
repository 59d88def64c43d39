package shim

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/user"
	"strconv"
	"time"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/registry/consul"
	"github.com/muster-agent/muster/shim/hadoop"
	"github.com/muster-agent/muster/shim/history"
	"github.com/muster-agent/muster/shim/journal"
	"github.com/muster-agent/muster/shim/policy"
	"github.com/muster-agent/muster/shim/status"
)

const (
	// keepPatience bounds what an agent does for the history store at its end, keepShare is the part of the launcher's
	// kill window that it may take.
	keepPatience = 20 * time.Second
	keepShare    = 3
	// registryPatience bounds the last question to the registry.
	registryPatience = 5 * time.Second
	warnHistory      = "history"
	warnSweep        = "history-sweep"
)

// historyWriter leaves an agent's part of its run in the history store.
type historyWriter struct {
	policy  policy.Policy
	hadoop  hadoop.Login
	log     *slog.Logger
	journal *journal.Journal
	client  *consul.Client
	app     appdef.App
	id, run string // of the app
	// conducted tells that the agent was the conductor, for a while at least: the run's files are its own to write.
	conducted bool
	context   history.Context
}

// patience is how long an agent may take whose launcher kills it after this window; 0: not known.
func (k historyWriter) patience(window time.Duration) time.Duration {
	if window > 0 {
		return min(keepPatience, window/keepShare)
	}
	return keepPatience
}

// keep writes while ctx lasts. It changes nothing of the agent's end: what fails is a warning.
func (k historyWriter) keep(ctx context.Context, in registry.Instance, own history.Instance) {
	k.tell(k.write(ctx, in, own))
}

// tell warns of a run that is not all in the store, and of old runs that stay there.
func (k historyWriter) tell(missing, unswept error) {
	if missing != nil {
		k.log.Warn("run not kept", "store", k.policy.History.Store, "err", missing)
		k.journal.Warn(warnHistory, fmt.Sprintf("the history store does not have all of this run: %v", missing))
	} else {
		k.journal.Mended(warnHistory, "the run is in the history store")
	}
	if unswept != nil {
		k.log.Warn("history store not swept", "store", k.policy.History.Store, "err", unswept)
		k.journal.Warn(warnSweep, fmt.Sprintf("the history store: %v", unswept))
	}
}

// write leaves what the agent has of the run, and removes old runs.
func (k historyWriter) write(
	ctx context.Context, in registry.Instance, own history.Instance,
) (missing, unswept error) {
	rules := k.policy.History
	store := history.New(rules.Store, k.hadoop.Stores(nil))
	defer store.Close()
	w, err := store.Writer(ctx, k.id, k.run, rules.Readers == policy.ReadersGroup)
	if err != nil {
		return err, nil
	}
	if keepsLogs(rules.Logs, own.Exit) {
		own.Logs = []string{"stdout", "stderr", "agent"}
	}
	missing = w.Put(ctx, in, own)
	if k.conducted {
		missing = errors.Join(missing, k.conclude(ctx, w, own.Hide))
		_, unswept = w.Sweep(ctx, history.Bound{Age: rules.Keep.Limit, Bytes: rules.Keep.Bytes}, time.Now())
	}
	return missing, unswept
}

// keepsLogs tells whether the logs of an instance are kept that ended so.
func keepsLogs(rule string, x status.ExitFile) bool {
	switch rule {
	case policy.LogsAll:
		return true
	case policy.LogsFailed:
		return x.AgentCode != 0 || x.Verdict == nil || x.Verdict.Outcome == registry.Failed
	}
	return false
}

// conclude writes what the registry knows of the run.
func (k historyWriter) conclude(ctx context.Context, w *history.Writer, hide func(string) string) error {
	asking, cancel := context.WithTimeout(ctx, registryPatience)
	defer cancel()
	st, err := k.client.Status(asking, k.id)
	if err != nil {
		return fmt.Errorf("registry: %w", err)
	}
	if st.App.Run != k.run || st.Conductor != "" {
		return nil // it is for the next run's conductor, or for the one that has taken over
	}
	definition, err := appdef.Marshal(k.app)
	if err != nil {
		return err
	}
	c := k.context
	c.User, c.Now = strconv.Itoa(os.Geteuid()), time.Now()
	if u, err := user.Current(); err == nil {
		c.User = u.Username
	}
	c.User = cmp.Or(st.App.User, c.User)
	return w.Conclude(ctx, history.RunOf(st, c), definition, hide)
}
