package shim

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"time"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/history"
	"github.com/muster-agent/muster/shim/machine"
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
)

// keeping is what an agent has to do with the history store at its end.
type keeping struct {
	callOff   func() // ends what is being written; nil: nothing is
	conducted bool   // the agent was the conductor, for a while at least
}

// keep leaves this agent's part of the run in the history store. It changes nothing of the agent's end: what fails is a
// warning. A request to end at once ends it.
func (a *agent) keep(ctx context.Context, final machine.State, x status.ExitFile) {
	rules := a.policy.History
	if rules.Store == "" || final.Instance.Component == "" || a.hurriedBy() != nil {
		return
	}
	patience := keepPatience
	if window := time.Duration(a.alloc.KillWindow * float64(time.Second)); window > 0 {
		patience = min(patience, window/keepShare)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	a.mu.Lock()
	a.keeping.callOff = cancel
	a.mu.Unlock()
	a.journal.Flush()
	if err := a.keepIn(ctx, final, x); err != nil {
		text := fmt.Sprintf("the history store does not have all of this run: %v", err)
		a.log.Warn("run not kept", "store", rules.Store, "err", err)
		a.journal.Warn(warnHistory, text)
	}
}

func (a *agent) keepIn(ctx context.Context, final machine.State, x status.ExitFile) error {
	rules := a.policy.History
	store, err := history.Open(ctx, rules.Store, a.hadoop.Stores(nil))
	if err != nil {
		return err
	}
	defer store.Close()
	w, err := store.Writer(ctx, a.id.appID, a.id.run, rules.Readers == policy.ReadersGroup)
	if err != nil {
		return err
	}
	own := history.Instance{
		State: history.State{State: a.snapshot(), GPUs: a.gpus.IDs()}, Exit: x, Plan: a.currentPlan().JSON(),
		LogDir: filepath.Join(a.logDir, final.Instance.String()), Hide: a.hidden.Hide,
	}
	if keepsLogs(rules.Logs, x) {
		own.Logs = []string{"stdout", "stderr", "agent"}
	}
	err = w.Put(ctx, final.Instance, own)
	a.mu.Lock()
	conducted := a.keeping.conducted
	a.mu.Unlock()
	if conducted {
		err = errors.Join(err, a.conclude(ctx, w))
		_, swept := w.Sweep(ctx, history.Bound{Age: rules.Keep.Limit, Bytes: rules.Keep.Bytes}, time.Now())
		err = errors.Join(err, swept)
	}
	return err
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

// conclude writes what the conductor knows of the run.
func (a *agent) conclude(ctx context.Context, w *history.Writer) error {
	asking, cancel := context.WithTimeout(ctx, registryPatience)
	defer cancel()
	st, err := a.client.Status(asking, a.id.appID)
	if err != nil {
		return fmt.Errorf("registry: %w", err)
	}
	if st.App.Run != a.id.run || st.Conductor != "" {
		return nil // it is for the next run's conductor, or for the one that has taken over
	}
	name := strconv.Itoa(os.Geteuid())
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	definition, err := history.Definition(a.app.App)
	if err != nil {
		return err
	}
	return w.Conclude(ctx, history.RunOf(st, history.Context{
		Name: a.app.Name, User: name, Launcher: a.alloc.Launcher, Registry: a.registryAddr.String(), Now: time.Now(),
	}), definition, a.hidden.Hide)
}
