package registry

import "time"

// Event is what the registry tells an agent of its gang while it is a member.
type Event interface{ event() }

// The events.
type (
	// DirectiveSeen comes at each change of the directive that is not older than the last.
	DirectiveSeen struct{ Directive Directive }
	// StandingBy says who holds the index that this agent waits for.
	StandingBy struct {
		Instance Instance
		Holder   Member
	}
	// Unreachable says since when no renewal was answered; Reachable ends it.
	Unreachable struct {
		Since time.Time
		Err   error
	}
	// Reachable says that the registry answers again.
	Reachable struct{}
	// SupersededBy says that another incarnation holds the index now: kill, then exit 75.
	SupersededBy struct{ Inc string }
	// DataLost says that the registry answers but no longer knows this app.
	DataLost struct{ Why string }
	// Conducting tells that this agent conducts (or does no longer).
	Conducting struct{ On bool }
	// Missing tells whom this agent, as the conductor, waits for since when and until when; those that it
	// named before and does not now are back, replaced, or lost.
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

// Report says how a process ended (T10).
type Report struct {
	Phase   Phase // ended or failed
	Exit    MemberExit
	Attempt int
	Budget  Budget
}

// Loss is a member that is away, as its conductor waits for it.
type Loss struct {
	Instance Instance
	Inc      string
	Since    time.Time // when it was first missed, or its time began anew
	End      time.Time // when it is declared lost
	Mass     bool      // more than half of the gang is away
}
