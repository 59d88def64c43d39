package machine

// Phase is where an agent stands: the word in the log, the status and on disk.
type Phase string

// The phases, in the order of a life without trouble; Superseded and Done are final.
const (
	Starting   Phase = "starting"   // before anything was asked
	Claiming   Phase = "claiming"   // looking for an index
	Standby    Phase = "standby"    // somebody else holds it
	Staging    Phase = "staging"    // files, ports, the parked guard
	Installed  Phase = "installed"  // staged; the acknowledgement is on its way
	Waiting    Phase = "waiting"    // acknowledged; the gang is not complete
	Running    Phase = "running"    // the process runs
	Stopping   Phase = "stopping"   // the process was asked to end
	Backoff    Phase = "backoff"    // the process failed and will be started again in place
	Holding    Phase = "holding"    // the process failed, and its container is kept for people to look
	Fenced     Phase = "fenced"     // cut off from the registry: the process was stopped, none may start
	Finishing  Phase = "finishing"  // the process is over; the gang's word is awaited
	Leaving    Phase = "leaving"    // giving the index back
	Superseded Phase = "superseded" // another agent holds the index
	Done       Phase = "done"
)

// allPhases lists all phases in that order.
func allPhases() []Phase {
	return []Phase{
		Starting, Claiming, Standby, Staging, Installed, Waiting, Running,
		Stopping, Holding, Backoff, Fenced, Finishing, Leaving, Superseded, Done,
	}
}

// Final tells whether nothing can follow.
func (p Phase) Final() bool { return p == Superseded || p == Done }
