package member

import (
	"errors"
	"fmt"
	"time"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/machine"
	"github.com/muster-agent/muster/shim/status"
)

// report turns what the registry reports into events of the machine.
func (m *Member) report(e registry.Event) {
	tell := m.cfg.Loop.Tell
	switch e := e.(type) {
	case registry.DirectiveSeen:
		tell(machine.Event{Kind: machine.Directed, Directive: &e.Directive})
		m.fence.lookNow() // its roster may be another
		m.cfg.Hooks.Save(e.Directive)
	case registry.StandingBy:
		h := e.Holder
		since := h.Since.Format(time.RFC3339)
		cause := fmt.Sprintf("%s is held by pid %d on %s since %s", e.Instance, h.Pid, h.Host, since)
		tell(machine.Event{Kind: machine.Held, Cause: cause})
	case registry.Unreachable:
		m.away(e)
	case registry.Reachable:
		tell(machine.Event{Kind: machine.Back})
		m.fence.tokenRefused.Store(false)
		m.cfg.Hooks.Mended(warnToken, "the registry accepts the token")
		m.cfg.Hooks.Mended(warnAway, "the registry answers again")
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

// The kinds of the warnings that the registry refuses this agent's token, and that it does not answer.
const (
	warnToken = "token"
	warnAway  = "registry"
)

// away passes on that the registry does not answer, or refuses the token.
//
// A refusal is an answer, and the agent says so, but it counts as silence for the fence. It proves that the registry
// works; it does not prove that the session was renewed, and it was not. The session ends within twice its TTL, and
// an agent whose token is good may then conduct, declare this member lost and give the index away. So the process must
// be gone by then: at the fence's time if peers are heard, else when the longest outage is over. What keeps a healthy
// gang running over a rotation is that the token's file is read again at each refusal.
func (m *Member) away(e registry.Unreachable) {
	refused := errors.Is(e.Err, registry.ErrForbidden)
	m.fence.tokenRefused.Store(refused)
	away := machine.Event{Kind: machine.Away, At: e.Since, Cause: fmt.Sprint(e.Err)}
	if refused {
		away.Code = exit.Forbidden
		m.cfg.Hooks.Warn(warnToken, fmt.Sprintf("%v: put a valid token into the file that CONSUL_HTTP_TOKEN_FILE "+
			"names; the process is stopped as in an outage if this lasts", e.Err))
	} else {
		m.cfg.Hooks.Warn(warnAway, fmt.Sprintf("%v; what runs goes on meanwhile: start the registry again, or mend "+
			"the network between", e.Err))
	}
	m.cfg.Loop.Tell(away)
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
