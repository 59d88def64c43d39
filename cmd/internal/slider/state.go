package slider

import (
	"slices"

	"github.com/muster-agent/muster/cmd/internal/apps"
	"github.com/muster-agent/muster/cmd/internal/view"
	"github.com/muster-agent/muster/registry"
)

// The states of an app as YARN names them; --state asks for one.
const (
	yarnNew      = "NEW"      // made, never started
	yarnAccepted = "ACCEPTED" // its run starts
	yarnRunning  = "RUNNING"
	yarnFinished = "FINISHED" // succeeded, or stopped
	yarnFailed   = "FAILED"
	yarnKilled   = "KILLED" // interrupted: it resumes when it is started again
)

func states() []string {
	return []string{yarnNew, yarnAccepted, yarnRunning, yarnFinished, yarnFailed, yarnKilled}
}

// state is what YARN says of the app, or would say of one that runs here.
func (a *app) state(f *apps.Facts) string {
	outcome := view.OrEmpty(f.Outcome())
	switch {
	case a.record.Yarn != nil:
		return a.word
	case f.Local == nil:
		return yarnNew
	case f.Phase() == "starting":
		return yarnAccepted
	case f.Living():
		return yarnRunning
	case outcome == string(registry.Failed):
		return yarnFailed
	case outcome == string(registry.Succeeded), outcome == string(registry.Stopped):
		return yarnFinished
	}
	return yarnKilled
}

// isLive tells of a state in which the app has a run.
func isLive(state string) bool {
	return slices.Contains([]string{yarnAccepted, yarnRunning, "NEW_SAVING", "SUBMITTED", "FINAL_SAVING"}, state)
}

// The numbers of Slider's StateValues.
const (
	stateSubmitted = 1
	stateCreated   = 2
	stateLive      = 3
	stateStopped   = 4
)

func stateNumber(yarn string) int {
	switch yarn {
	case yarnNew:
		return stateCreated
	case yarnRunning:
		return stateLive
	}
	if isLive(yarn) {
		return stateSubmitted
	}
	return stateStopped
}
