package machine

import (
	"time"

	"github.com/muster-agent/muster/registry"
)

// effectKind names work that the machine asks for.
type effectKind string

// The effects. Those of the gang write to the registry, those of the stager prepare the
// container, those of the engine act on the process, the checkpoints' commit steps; the loop arms the timers.
const (
	DoJoin        effectKind = "join"
	DoAcknowledge effectKind = "acknowledge"
	DoPublish     effectKind = "publish"
	DoReadRoster  effectKind = "read-roster"
	DoReport      effectKind = "report"
	DoRestarted   effectKind = "report-restart"
	DoReportUp    effectKind = "report-up"
	DoCommit      effectKind = "commit-checkpoint"
	DoLeave       effectKind = "leave"

	DoStage effectKind = "stage"

	DoStart     effectKind = "start"
	DoTerminate effectKind = "terminate"
	DoKill      effectKind = "kill"
	DoRebind    effectKind = "rebind"

	DoArm effectKind = "arm"
)

// Effect is one order; what comes of it returns as an Event.
type Effect struct {
	Kind    effectKind
	Attempt int
	Gen     int
	Report  *registry.Report // DoReport
	Budget  registry.Budget  // DoRestarted, DoReportUp
	Step    int64            // DoCommit
	Timer   timer            // DoArm
	After   time.Duration    // DoArm
	Roster  registry.RosterRef
	Resume  *int64 // DoStart: newest step that every rank has, registry.NoStep for none; nil: the newest of all
}

// Room is the queue of the loop that an effect goes to.
func (k effectKind) Room() string {
	switch k {
	case DoJoin, DoAcknowledge, DoPublish, DoReadRoster, DoReport, DoRestarted, DoReportUp, DoLeave:
		return "gang"
	case DoStage:
		return "stager"
	case DoStart, DoTerminate, DoKill, DoRebind:
		return "engine"
	case DoCommit:
		return "checkpoints"
	case DoArm:
		return "loop"
	}
	panic("shim: effect without a room: " + string(k))
}
