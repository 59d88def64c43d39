package registry

import "time"

// Event is what the registry tells a member about its gang.
type Event interface{ event() }

// The events.
type (
	// DirectiveSeen comes at each change of the directive, never with an older one.
	DirectiveSeen struct{ Directive Directive }
	// StandingBy names the holder of the index that this agent waits for.
	StandingBy struct {
		Instance Instance
		Holder   Member
	}
	// Unreachable tells since when no renewal was answered, or that the registry refuses the token (ErrForbidden);
	// Reachable ends it.
	Unreachable struct {
		Since time.Time
		Err   error
	}
	// Reachable: the registry answers again.
	Reachable struct{}
	// SupersededBy: another incarnation holds the index now. The agent must kill its process and exit with 75.
	SupersededBy struct{ Inc string }
	// DataLost: the registry answers but no longer knows this app.
	DataLost struct{ Why string }
	// Conducting tells whether this agent conducts.
	Conducting struct{ On bool }
	// Missing lists the members that this agent, as the conductor, waits for, since when and until when. Members that
	// are no longer listed are back, replaced or lost.
	Missing struct{ Losses []Loss }
)

func (DirectiveSeen) event() {}

func (StandingBy) event() {}

func (Unreachable) event() {}

func (Reachable) event() {}

func (SupersededBy) event() {}

func (DataLost) event() {}

func (Conducting) event() {}

func (Missing) event() {}

// Report is how a process ended (T10).
type Report struct {
	Phase   Phase // ended or failed
	Exit    MemberExit
	Attempt int
	Budget  Budget
}

// Loss is an unreachable member that the conductor waits for.
type Loss struct {
	Instance Instance
	Inc      string
	Since    time.Time // when it was first missed, or its timer started anew
	End      time.Time // when it is declared lost
	Mass     bool      // more than half of the gang is unreachable
}
