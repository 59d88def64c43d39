package run

// The causes of a run without a verdict. Each has a row in the catalogue of errors (cmd/internal/troubles).
const (
	causeAgentEnded  = "the agent of %s ended by %s without a verdict"
	causeAgentsEnded = "all agents ended without a verdict"
	causeSignal      = "%s from outside"
)
