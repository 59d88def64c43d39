package process

// What the end of a process meant, where its code does not say it. Each has a row in the catalogue of errors
// (cmd/internal/troubles).
const (
	causeLimit     = "killed at the limit of %d MB"
	causeLimitMany = "%d processes killed at the limit of %d MB"
	causeInUse     = "address already in use"
	causeDeadMan   = "ended by the guard's dead-man timer"
	causeLeftover  = "START had ended with 0, and what it had left behind was ended"
	causeOverlong  = "%s was at work for %s and was ended"
)
