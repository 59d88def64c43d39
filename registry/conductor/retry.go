package conductor

import (
	"fmt"
	"time"

	"github.com/muster-agent/muster/registry"
)

// The pauses before a full restart: none before the first, then doubling. After a conflict with other jobs the pause is
// longer, to give those time.
const (
	retryPause        = time.Second
	retryPauseMost    = time.Minute
	conflictPause     = 30 * time.Second
	conflictPauseMost = 10 * time.Minute
)

// recovery says whether a retry can help after a failure.
type recovery int

const (
	unknown   recovery = iota // it may help
	transient                 // the app did not cause the failure
	conflict                  // the app did not cause it, but at once it would happen again
	permanent                 // the app would fail in the same way again
)

// retryable judges a failure by its class and by the end of the first process (nil: no process ended), as PAI does. A
// shell's 128+n stands for signal n.
func retryable(exit *registry.MemberExit, class registry.Class) recovery {
	switch class {
	case registry.ClassHost, registry.ClassPreempted, registry.ClassGPU, registry.ClassNetwork, registry.ClassLauncher,
		registry.ClassRegistry, registry.ClassFlex, registry.ClassMismatch:
		return transient
	case registry.ClassImage:
		if exit != nil && exit.Passing {
			return transient
		}
		return permanent // the image does not exist, is not accessible, or is none
	case registry.ClassTimeout:
		if exit == nil {
			return conflict // a member did not come in time
		}
		return permanent // its time limit is over, as the definition wants it
	case registry.ClassOOM, registry.ClassDefinition, registry.ClassNotPermitted, registry.ClassStopped:
		return permanent
	case registry.ClassNone, registry.ClassApp:
		return recoveryOf(exit)
	case registry.ClassData, registry.ClassMuster: // the causes vary
	}
	return unknown
}

func recoveryOf(e *registry.MemberExit) recovery {
	if e == nil {
		return unknown
	}
	sig := e.Signal
	if sig == 0 && e.Code != nil {
		sig = *e.Code - 128
	}
	switch sig {
	case 2, 3, 9, 15: // INT, QUIT, KILL, TERM: from outside
		return transient
	case 4, 7, 8, 13: // ILL, BUS, FPE, PIPE
		return permanent
	}
	return unknown
}

// again tells whether the gang restarts in place of this verdict, how that counts, and how long it waits before.
func (f Facts) again(
	have registry.Retries, v registry.Verdict,
) (next registry.Retries, rest time.Duration, ok bool) {
	kind := unknown
	if v.Outcome == registry.Failed {
		kind = retryable(v.Exit, v.Class)
	}
	if v.Class == registry.ClassOOM && f.grows(v.First) {
		kind = unknown // only with the same memory would it happen again
	}
	free := false
	switch {
	case v.Outcome == registry.Stopped, v.Class == registry.ClassTimeout && kind == permanent:
		return have, 0, false // a stop by the operator and a time limit are final
	case f.Retry == RetryAlways:
	case v.Outcome == registry.Succeeded, kind == permanent:
		return have, 0, false
	case f.RetryTransient && kind != unknown:
		free = true
	case f.Retry != RetryForever && have.Used >= f.Retry:
		return have, 0, false
	}
	next = have
	if free {
		next.Free++
	} else {
		next.Used++
	}
	return next, pauseBefore(have, kind), true
}

// grows tells whether an instance gets more memory when it restarts.
func (f Facts) grows(instance string) bool {
	in, err := registry.ParseInstance(instance)
	c, ok := f.component(in.Component)
	return err == nil && ok && c.Grows
}

// pauseBefore is the pause before the next retry, by the number of retries so far.
func pauseBefore(t registry.Retries, kind recovery) time.Duration {
	n, wait, most := t.Used+t.Free, retryPause, retryPauseMost
	if kind == conflict {
		n, wait, most = n+1, conflictPause, conflictPauseMost
	}
	if n == 0 {
		return 0
	}
	for range n - 1 {
		if wait = min(2*wait, most); wait == most {
			break
		}
	}
	return wait
}

// ordinal describes which retry the next one is.
func (f Facts) ordinal(have, next registry.Retries, rest time.Duration) string {
	s := "not counted"
	switch {
	case next.Used == have.Used:
	case f.Retry > 0:
		s = fmt.Sprintf("retry %d of %d", next.Used, f.Retry)
	default:
		s = fmt.Sprintf("retry %d", next.Used)
	}
	if rest > 0 {
		s += ", after a pause of " + seconds(rest)
	}
	return s
}
