package checkpoint

import (
	"context"
	"crypto/sha256"
	"fmt"
	"path/filepath"
	"time"

	"github.com/muster-agent/muster/shim/checkpoint/format"
	"github.com/muster-agent/muster/shim/hostlock"
	"github.com/muster-agent/muster/shim/plan"
	"github.com/muster-agent/muster/shim/status"
)

// Instances on one host often share a checkpoint folder, of a network's filesystem or in a store. One of their agents
// lists it, and the others take what it found from a file in the state folder that they share. When that agent ends,
// the next takes its place.

// listing is that file.
type listing struct {
	At     time.Time          `json:"at"`               // when the look began
	Newest *format.Checkpoint `json:"newest,omitempty"` // complete; nil: there is none
}

// shared is one agent's part in sharing the looks at one folder.
type shared struct {
	name string         // of the lock, and of the file; "": not known yet
	path string         // of the file
	lock *hostlock.Lock // held by the agent that lists
}

// share names what agents must have in common to find the same: state folder, checkpoint folder and rule.
func (s *shared) share(m *Manager, l location) {
	rule := ruleOf(m.plan)
	what := fmt.Sprintf("%s %s %s %t %+v", m.cfg.State, l.dir, l.place, m.plan.Root.Kind == plan.RootHost, rule)
	name := fmt.Sprintf("%x", sha256.Sum256([]byte(what)))[:32]
	if name == s.name {
		return
	}
	s.release()
	s.name, s.path = name, filepath.Join(m.cfg.State, "checkpoints-"+name)
}

// leads tells whether this agent lists the folder for all.
func (s *shared) leads() bool {
	if s.name == "" {
		return false
	}
	if s.lock == nil {
		lock, err := hostlock.Take("list/" + s.name)
		if err != nil {
			return false
		}
		s.lock = lock
	}
	return true
}

func (s *shared) release() {
	_ = s.lock.Release() // held by this process alone
	s.lock = nil
}

// borrow is what another agent has found in the folder not long ago. An agent that has resumed since looks for itself:
// the listing may have what it has quarantined.
func (w *watch) borrow(ctx context.Context) (listing, bool) {
	m, now := w.m, time.Now()
	if m.cfg.State == "" || w.located.IsZero() {
		return listing{}, false
	}
	if now.Sub(w.located) >= quietPoll {
		w.at, w.located = m.locate(ctx), now
	}
	if !w.at.shared {
		w.release()
		return listing{}, false
	}
	w.share(m, w.at)
	if w.leads() {
		return listing{}, false
	}
	var one listing
	if err := status.ReadJSON(w.path, &one); err != nil {
		return listing{}, false
	}
	m.mu.Lock()
	resumed := m.resumedAt
	m.mu.Unlock()
	if one.At.After(now) || now.Sub(one.At) > 2*quietPoll || !one.At.After(resumed) {
		return listing{}, false
	}
	return one, true
}
