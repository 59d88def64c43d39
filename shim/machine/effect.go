package machine

import (
	"time"

	"github.com/muster-agent/muster/registry"
)

// EffectKind names work that the machine asks for.
type EffectKind string

// The effects. Those of the gang write to the registry, those of the stager prepare the
// container, those of the engine act on the process, the checkpoints' commit steps; the loop arms the timers.
const (
	DoJoin        EffectKind = "join"
	DoAcknowledge EffectKind = "acknowledge"
	DoPublish     EffectKind = "publish"
	DoReadRoster  EffectKind = "read-roster"
	DoReport      EffectKind = "report"
	DoRestarted   EffectKind = "report-restart"
	DoReportUp    EffectKind = "report-up"
	DoCommit      EffectKind = "commit-checkpoint"
	DoLeave       EffectKind = "leave"

	DoStage EffectKind = "stage"

	DoStart     EffectKind = "start"
	DoTerminate EffectKind = "terminate"
	DoKill      EffectKind = "kill"
	DoRebind    EffectKind = "rebind"

	DoArm EffectKind = "arm"
)

// Effect is one order; what comes of it returns as an Event.
type Effect struct {
	Kind    EffectKind
	Attempt int
	Gen     int
	Report  *registry.Report // DoReport
	Budget  registry.Budget  // DoRestarted, DoReportUp
	Step    int64            // DoCommit
	Timer   Timer            // DoArm
	After   time.Duration    // DoArm
	Roster  registry.RosterRef
	Resume  *int64 // DoStart: newest step that every rank has, registry.NoStep for none; nil: the newest of all
}

// Room is the queue of the loop that an effect goes to.
func (k EffectKind) Room() string {
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
