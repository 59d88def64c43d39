package conductor

// The causes of a verdict. Each has a row in the catalogue of errors (cmd/internal/troubles).
const (
	causeExited  = "%s exited with %d"
	causeKilled  = "%s was killed by %s"
	causeMemory  = "%s ran out of memory"
	causeFailed  = "%s failed: %s"
	causeUnknown = "%s failed (%s)"
	causeLost    = "%s was lost with its agent on %s"
	causeLeft    = "%s left"

	causeReplaced = "%s was replaced"
	causeMoved    = "%s moved to %s"

	causeNotReady    = "%d of %d instances were not ready within %s: %s"
	causeNotReplaced = "%s was not replaced within %s: %s"
	causeNotReleased = "%s was not released within %s: %s"
	causeDeadlock    = "commandOrders: %s wait for each other to have started"

	causeStopped   = "stopped"
	causeStoppedBy = "stopped by %s"

	causeDone          = "all %d instances of %s are done"
	causeEnoughOf      = "%d %s ended with 0, %d were asked for"
	causeEnoughOfAll   = "%d of %d instances asked for have ended with 0"
	causeAlsoOfOne     = "; %d instances of %s have failed"
	causeAlsoOfAll     = "; %d of %d instances have failed"
	causeAfterRestarts = " after %d restart%s"
	causeGangRestarted = "gang restarted after %s (%s)"
	causeAgentDied     = "its agent died"
)
