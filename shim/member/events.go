package member

import (
	"fmt"
	"time"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/machine"
	"github.com/muster-agent/muster/shim/status"
)

// report turns what the registry reports into events of the machine.
func (m *Member) report(e registry.Event) {
	tell := m.cfg.Loop.Tell
	switch e := e.(type) {
	case registry.DirectiveSeen:
		tell(machine.Event{Kind: machine.Directed, Directive: &e.Directive})
		m.cfg.Hooks.Save(e.Directive)
	case registry.StandingBy:
		h := e.Holder
		since := h.Since.Format(time.RFC3339)
		cause := fmt.Sprintf("%s is held by pid %d on %s since %s", e.Instance, h.Pid, h.Host, since)
		tell(machine.Event{Kind: machine.Held, Cause: cause})
	case registry.Unreachable:
		tell(machine.Event{Kind: machine.Away, At: e.Since, Cause: fmt.Sprint(e.Err)})
	case registry.Reachable:
		tell(machine.Event{Kind: machine.Back})
	case registry.SupersededBy:
		tell(machine.Event{Kind: machine.Taken, Cause: "another agent holds the index: " + e.Inc})
	case registry.DataLost:
		tell(machine.Event{Kind: machine.DataLost, Cause: e.Why})
	case registry.Conducting:
		tell(machine.Event{Kind: machine.Conducting, On: e.On})
	case registry.Missing:
		m.keepWaits(e.Losses)
	}
}

// keepWaits keeps for whom this agent waits as the conductor.
func (m *Member) keepWaits(losses []registry.Loss) {
	var waits []status.Wait
	for _, l := range losses {
		w := status.Wait{
			Instance: l.Instance.String(), Since: status.Stamp(l.Since), Until: status.Stamp(l.End), Mass: l.Mass,
		}
		waits = append(waits, w)
		m.cfg.Log.Warn("session of a member expired", "member", w.Instance, "lost_at", w.Until, "most_expired", w.Mass)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.waits = waits
}
