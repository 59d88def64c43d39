package shim

// rule: in phase From, on event On, if the guard holds: go to To and do these things. The first
// rule that matches wins; no rule means that the event changes nothing.
type rule struct {
	From Phase
	On   EventKind
	If   guard
	To   Phase
	Do   []action
}

func do(a ...action) []action { return a }

// rules is the whole life of an agent; doc/machine.md is printed from it. Nothing ever writes to it.
var rules = []rule{
	{Starting, Boot, always, Claiming, do(join)},
	{Starting, Term, always, Done, do(interrupted)},

	{Claiming, Held, always, Standby, nil},
	{Claiming, Joined, toldToStop, Leaving, do(leave)},
	{Claiming, Joined, spent, Finishing, nil},
	{Claiming, Joined, always, Staging, do(stage)},
	{Claiming, Refused, always, Done, nil},
	{Claiming, Term, always, Leaving, do(interrupted, leave)},
	{Standby, Joined, toldToStop, Leaving, do(leave)},
	{Standby, Joined, spent, Finishing, nil},
	{Standby, Joined, always, Staging, do(stage)},
	{Standby, Refused, always, Done, nil},
	{Standby, Term, always, Leaving, do(interrupted, leave)},

	{Staging, Staged, toldToStop, Leaving, do(leave)},
	{Staging, Staged, service, Installed, do(publish)},
	{Staging, Staged, newGeneration, Installed, do(acknowledge, armBarrier, armRun)},
	{Staging, Staged, rejoinable, Installed, do(readRoster, armBarrier, armRun)},
	{Staging, Staged, always, Installed, do(publish, armBarrier, armRun)},
	{Staging, StageFailed, always, Finishing, do(reportFailed)},
	{Staging, Directed, toldToStop, Leaving, do(leave)},
	{Staging, Term, always, Leaving, do(interrupted, leave)},
	{Staging, Taken, always, Superseded, do(superseded)},

	{Installed, Published, service, Running, do(start)},
	{Installed, Directed, toldToStop, Leaving, do(leave)},
	{Installed, Directed, newGeneration, Installed, do(acknowledge)},
	{Installed, Directed, rejoinable, Installed, do(readRoster)},
	{Installed, Rebound, newGeneration, Installed, do(acknowledge)},
	{Installed, Rebound, rejoinable, Installed, do(readRoster)},
	{Installed, Sealed, unacknowledged, Installed, do(acknowledge)},
	{Installed, Mismatch, unacknowledged, Installed, do(publish)},
	{Installed, Acked, toldToStop, Leaving, do(leave)},
	{Installed, Acked, newGeneration, Installed, do(acknowledge)},
	{Installed, Acked, released, Waiting, do(readRoster)},
	{Installed, Acked, always, Waiting, nil},
	{Installed, Overtaken, newGeneration, Installed, do(acknowledge)},
	{Installed, Overtaken, rejoinable, Installed, do(readRoster)},
	{Installed, Denied, always, Leaving, do(leave)},
	{Installed, Fired, runOver, Finishing, do(forTimeout, reportTimeout)},
	{Installed, Fired, barrierOver, Leaving, do(timedOut, leave)},
	{Installed, Term, always, Leaving, do(interrupted, leave)},
	{Installed, Taken, always, Superseded, do(superseded)},

	{Waiting, Directed, toldToStop, Leaving, do(leave)},
	{Waiting, Directed, newGeneration, Installed, do(acknowledge)},
	{Waiting, Directed, released, Waiting, do(readRoster)},
	{Waiting, Directed, rejoinable, Installed, do(readRoster)},
	{Waiting, Acked, newGeneration, Installed, do(acknowledge)},
	{Waiting, Acked, released, Waiting, do(readRoster)},
	{Waiting, Sealed, released, Running, do(start)},
	{Waiting, Mismatch, released, Finishing, do(reportMismatch)},
	{Waiting, Denied, always, Leaving, do(leave)},
	{Waiting, Fired, runOver, Finishing, do(forTimeout, reportTimeout)},
	{Waiting, Fired, barrierOver, Leaving, do(timedOut, leave)},
	{Waiting, Term, always, Leaving, do(interrupted, leave)},
	{Waiting, Taken, always, Superseded, do(superseded)},

	{Running, Directed, toldToStop, Stopping, do(forVerdict, terminate)},
	{Running, Directed, overtaken, Stopping, do(forRebuild, terminate)},
	{Running, Gone, service, Backoff, do(rebind, backOff)},
	{Running, Gone, clean, Finishing, do(reportEnded)},
	{Running, Gone, freeRetry, Backoff, do(rebind, backOffFree)},
	{Running, Gone, restartable, Backoff, do(rebind, charge, backOff)},
	{Running, Gone, always, Finishing, do(reportFailed)},
	{Running, Fired, timeOver, Stopping, do(forTimeout, terminate)},
	{Running, Term, always, Stopping, do(forLauncher, terminate)},
	{Running, Taken, always, Stopping, do(forAnother, kill)},

	{Stopping, Gone, stoppedFor(ForAnother), Superseded, do(superseded)},
	{Stopping, Gone, stoppedFor(ForLauncher), Leaving, do(interrupted, leave)},
	{Stopping, Gone, stoppedFor(ForVerdict), Leaving, do(leave)},
	{Stopping, Gone, stoppedFor(ForTimeout), Finishing, do(reportTimeout)},
	{Stopping, Gone, timeIsOver, Finishing, do(forTimeout, reportTimeout)},
	{Stopping, Gone, always, Installed, do(rebind, armBarrier)},
	{Stopping, Fired, graceOver, Stopping, do(kill)},
	{Stopping, Directed, verdictCounts, Stopping, do(forVerdict)},
	{Stopping, Term, again, Stopping, do(kill)},
	{Stopping, Term, stoppedFor(ForRebuild), Stopping, do(forLauncher)},
	{Stopping, Term, stoppedFor(ForTimeout), Stopping, do(forLauncher)},
	{Stopping, Taken, always, Stopping, do(forAnother, kill)},

	{Backoff, Fired, rested, Running, do(reportRestart, start)},
	{Backoff, Fired, runOver, Finishing, do(forTimeout, reportTimeout)},
	{Backoff, Rebound, serviceMoved, Backoff, do(publish)},
	{Backoff, Rebound, portsLost, Finishing, do(reportMismatch)},
	{Backoff, Rebound, rested, Running, do(reportRestart, start)},
	{Backoff, Published, rested, Running, do(reportRestart, start)},
	{Backoff, Directed, toldToStop, Leaving, do(leave)},
	{Backoff, Directed, overtaken, Installed, do(rebind, armBarrier)},
	{Backoff, Term, always, Leaving, do(interrupted, leave)},
	{Backoff, Taken, always, Superseded, do(superseded)},

	{Finishing, Directed, toldToStop, Leaving, do(leave)},
	{Finishing, Directed, startsOverTooLate, Finishing, do(forTimeout, reportTimeout)},
	{Finishing, Directed, startsOver, Installed, do(rebind, armBarrier)},
	{Finishing, Denied, always, Leaving, do(leave)},
	{Finishing, Term, always, Leaving, do(interrupted, leave)},
	{Finishing, Taken, always, Superseded, do(superseded)},

	{Leaving, Left, always, Done, nil},
}
