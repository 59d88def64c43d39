package notices

import (
	"fmt"
	"strconv"
	"time"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/machine"
)

// Self is the agent that sends.
type Self struct {
	App, Name, Host string
	Inc             string
}

// Watch finds the events in what the machine of one agent hears. The machine's loop alone calls it.
type Watch struct {
	Self
	ran  int    // generation that the process of this instance last ran in
	told string // ID of the newest event of the gang
}

// justWritten is how old a directive may be that a new conductor tells of again: its writer may have died before it
// could.
const justWritten = 2 * time.Minute

// Heard takes one event of the machine, and the states before and after it.
func (w *Watch) Heard(before machine.State, e machine.Event, s machine.State) []Message {
	switch e.Kind { //nolint:exhaustive // the others tell nobody anything
	case machine.Joined:
		if s.Directive.Act == registry.ActRun { // the instance is replaced while the others run
			w.ran = s.Directive.Gen
		}
	case machine.Directed:
		if s.Directive.By == w.Inc {
			return w.directed(s.Directive)
		}
	case machine.Conducting:
		if e.On && e.At.Sub(s.Directive.At) < justWritten {
			return w.directed(s.Directive)
		}
	case machine.Started:
		again := s.Attempt > 1 && s.Gen == w.ran
		w.ran = s.Gen
		if again {
			return []Message{w.again(s, e.At)}
		}
	case machine.Gone:
		if before.Phase == machine.Running && !e.Exit.OK() && !e.Exit.CutOff {
			return []Message{w.failed(s, e.At)}
		}
	case machine.StageFailed:
		return []Message{w.failed(s, e.At)}
	}
	return nil
}

// directed is the event of the gang that a directive is.
func (w *Watch) directed(d registry.Directive) []Message {
	m := Message{Generation: d.Gen}
	text, about := "", strconv.Itoa(d.Gen)
	switch {
	case d.Verdict != nil:
		v := d.Verdict
		m.Event, m.Outcome, m.Class, m.Cause, m.Advice = verdict, v.Outcome, string(v.Class), v.Cause, v.Advice
		m.Instance, about = v.First, ""
		text = string(v.Outcome)
	case d.Act == registry.ActRun:
		m.Event, text = start, fmt.Sprintf("generation %d runs", d.Gen)
		if d.Resume != nil && *d.Resume != registry.NoStep {
			text += fmt.Sprintf(", resumed from step %d", *d.Resume)
		}
	case d.Act == registry.ActWait && (d.First != "" || d.StopGrace > 0): // others found a run
		m.Event, m.Cause, m.Instance = restart, d.Why, d.First
		text = fmt.Sprintf("restarts as generation %d", d.Gen)
	default:
		return nil
	}
	if m.Cause != "" {
		text += ": " + m.Cause
	}
	m = w.fill(m, d.Run, about, text, d.At)
	if m.ID == w.told {
		return nil
	}
	w.told = m.ID
	return []Message{m}
}

// again is the start of a process in the generation that it ran in before.
func (w *Watch) again(s machine.State, at time.Time) Message {
	m := w.process(restart, s)
	return w.fill(m, s.Directive.Run, fmt.Sprintf("%s/%d", m.Instance, m.Attempt),
		fmt.Sprintf("%s restarts, attempt %d", m.Instance, m.Attempt), at)
}

// failed is the end of a process that nobody had asked for, or of what had to come before it.
func (w *Watch) failed(s machine.State, at time.Time) Message {
	m := w.process(failure, s)
	m.Cause = s.Exit.Why()
	if m.Exit = s.Exit.Code; m.Exit == nil {
		m.Signal = s.Exit.Signal
	}
	return w.fill(m, s.Directive.Run, fmt.Sprintf("%s/%d", m.Instance, m.Attempt), m.Instance+" "+m.Cause, at)
}
