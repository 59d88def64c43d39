package machine

import (
	"cmp"
	"fmt"
	"time"

	"github.com/muster-agent/muster/registry"
)

// Why is what a person asks next of an instance in this state: the reason it is there. "" where the phase says it all.
func (s State) Why() string {
	switch {
	case s.LostData != "":
		return "registry lost its data: " + s.LostData + "; muster adopt writes it again"
	case s.Phase == Holding:
		return s.Exit.Why() + "; its container is kept until " +
			s.HoldUntil.UTC().Format(time.DateTime) + " UTC: muster exec looks into it, muster hold --release ends it"
	case s.Phase == Backoff && s.Exit != nil:
		why := s.Exit.Why() + "; restarting"
		if s.Policy.Rule.Max < 0 || s.Exit.Free { // no limit, or not charged: nothing is counted
			return why
		}
		return fmt.Sprintf("%s %d/%d", why, s.Budget.Used, s.Policy.Rule.Max)
	case s.Phase == Stopping && s.Reason == byLauncher: // no directive wants it
		return cmp.Or(s.Cause, "told to end from outside")
	case (s.Phase == Waiting || s.Phase == Installed || s.Phase == Stopping) && s.Directive.Why != "":
		return s.Directive.Why
	case s.Phase == Finishing && s.Exit != nil:
		return s.Exit.Why()
	case s.Phase == Running && !s.Up:
		return "starting"
	}
	return s.Cause
}

// Why is the cause of a transition.
func (t Transition) Why() string {
	switch {
	case t.To == Backoff, t.To == Holding:
		return t.State.Why()
	case t.Event.Kind == Gone:
		return t.Event.Exit.Why()
	case t.Event.Kind == Directed && t.Event.Directive.Act == registry.ActWait && t.Event.Directive.Why != "":
		return fmt.Sprintf("generation %d forms: %s", t.Event.Directive.Gen, t.Event.Directive.Why)
	case t.Event.Directive != nil && t.Event.Directive.Why != "":
		return t.Event.Directive.Why
	}
	return t.Event.Cause
}
