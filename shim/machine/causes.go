package machine

// How an instance can end, in the words of status, agent.log and the verdict. Each has a row in the catalogue of errors
// (cmd/internal/troubles).
const (
	causeExited     = "exited with %d"
	causeKilled     = "killed by %s"
	causeMemory     = "out of memory"
	causeNotStarted = "did not start: %s"
	causeNeverRan   = "never ran"

	causeTimeout  = "not done after %s (muster.timeout)"
	causeDuration = "still running after %s (muster.duration)"

	causeCutOff   = "cut off from the registry"
	causeOtherRow = "the roster's row has another address"
)
