package notices

import (
	"fmt"
	"time"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/machine"
)

// The events; a policy may choose among them (see policy.Policy.Notify).
const (
	start   = "start"
	failure = "failure"
	restart = "restart"
	silence = "silence"
	verdict = "verdict"
)

// Events are all of them, in the order in which they are written.
func Events() []string { return []string{start, failure, restart, silence, verdict} }

// Message is what a receiver gets of one event.
type Message struct {
	Version    int       `json:"version"`
	ID         string    `json:"id"` // the same each time that the event is told of
	Event      string    `json:"event"`
	Text       string    `json:"text"` // in one line, for people
	At         time.Time `json:"at"`
	App        string    `json:"app"`
	Name       string    `json:"name"` // in the definition
	Run        string    `json:"run"`
	Generation int       `json:"generation"`
	// Instance and Attempt are of the process that an event is about, if it is about one.
	Instance string `json:"instance,omitempty"`
	Attempt  int    `json:"attempt,omitempty"`
	Host     string `json:"host"` // of the sender
	Cause    string `json:"cause,omitempty"`
	Exit     *int   `json:"exit,omitempty"`   // code of a failed process
	Signal   int    `json:"signal,omitempty"` // that killed it
	// Outcome, Class and Advice are of a verdict.
	Outcome registry.Outcome `json:"outcome,omitempty"`
	Class   string           `json:"class,omitempty"`
	Advice  string           `json:"advice,omitempty"`
}

// Hide takes secret values out of the texts.
func (m Message) Hide(hide func(string) string) Message {
	m.Text, m.Cause, m.Advice = hide(m.Text), hide(m.Cause), hide(m.Advice)
	return m
}

// fill adds what all messages have; about tells events of a kind apart.
func (s Self) fill(m Message, run, about, text string, at time.Time) Message {
	m.Version, m.App, m.Name, m.Run, m.Host, m.At = 1, s.App, s.Name, run, s.Host, at.UTC().Truncate(time.Millisecond)
	m.ID = s.App + "/" + run + "/" + m.Event
	if about != "" {
		m.ID += "/" + about
	}
	m.Text = s.App + ": " + text
	return m
}

// Silence is the message that a process has shown no sign of life since a time.
func (s Self) Silence(state machine.State, since time.Time, cause string, at time.Time) Message {
	m := s.process(silence, state)
	m.Cause = cause
	about := fmt.Sprintf("%s/%d/%d", m.Instance, m.Attempt, since.Unix())
	return s.fill(m, state.Directive.Run, about, cause, at)
}

// process begins a message about the process of this agent.
func (s Self) process(event string, state machine.State) Message {
	return Message{
		Event: event, Instance: state.Instance.String(), Attempt: state.Attempt, Generation: state.Gen,
	}
}
