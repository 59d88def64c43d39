package registry

import (
	"cmp"
	"fmt"
	"time"
)

// Fixed times of the fence (doc/protocol.md). The configurable times must leave room for them.
const (
	silenceMargin = 3 * time.Second         // silence that counts as evidence: 2 TTL + time-out + this
	fenceAfter    = 5 * time.Second         // from there to the fence: more than two questions to the peers
	EvidenceValid = 5 * time.Second         // how long an answer of the peers counts
	AskRound      = 1500 * time.Millisecond // time limit for the answers to one question to the peers
	FenceStop     = 20 * time.Second        // time to stop the process, kill it and prove that it is gone
	FenceGrace    = FenceStop / 2           // time of a fenced process to end before it is killed
	clockMargin   = 5 * time.Second         // for clocks of different rates, and late scheduling
	relaunch      = time.Minute             // what a launcher may take for a replacement
	minTTL        = 10 * time.Second        // the registry's shortest session
	maxWait       = time.Minute             // limits how long a deleted token goes unnoticed
)

// DefaultTimes are the times of doc/protocol.md, for an agent without others.
func DefaultTimes() Times {
	return Times{
		TTL: minTTL, Renew: 3 * time.Second, Request: 2 * time.Second,
		LostMass: 10 * time.Minute, Lost: time.Minute, Barrier: 30 * time.Minute, Wait: time.Minute,
	}
}

// OrDefaults are the times with the defaults in place of those that are zero.
func (t Times) OrDefaults() Times {
	d := DefaultTimes()
	return Times{
		TTL: cmp.Or(t.TTL, d.TTL), Renew: cmp.Or(t.Renew, d.Renew), Request: cmp.Or(t.Request, d.Request),
		LostMass: cmp.Or(t.LostMass, d.LostMass),
		Lost:     cmp.Or(t.Lost, d.Lost), Barrier: cmp.Or(t.Barrier, d.Barrier), Wait: cmp.Or(t.Wait, d.Wait),
	}
}

// Silent is the silence after which a member's session has ended if the registry works. From then on the member asks
// its peers, and its own silence counts as evidence for them.
func (t Times) Silent() time.Duration { return 2*t.TTL + t.Request + silenceMargin }

// Fence is the silence after which a member without evidence stops its process.
func (t Times) Fence() time.Duration { return t.Silent() + fenceAfter }

// Outage is the silence after which a process stops although no member reaches the registry: the conductor waits for
// missing members for LostMass at most.
func (t Times) Outage() time.Duration { return t.LostMass - FenceStop - EvidenceValid - clockMargin }

// Gone is the silence after which the process of a member without evidence has ended.
func (t Times) Gone() time.Duration { return t.Fence() + EvidenceValid + FenceStop }

// Agreed are the times that all agents of a run must share.
func (t Times) Agreed() AgreedTimes {
	return AgreedTimes{
		TTL: t.TTL.Seconds(), Lost: t.Lost.Seconds(), LostMass: t.LostMass.Seconds(), Fence: fixedTimes(),
	}
}

// fixedTimes are the constants that agents of a run must share.
func fixedTimes() FenceTimes {
	return FenceTimes{
		SilenceMargin: silenceMargin.Seconds(), After: fenceAfter.Seconds(), Evidence: EvidenceValid.Seconds(),
		AskRound: AskRound.Seconds(), Stop: FenceStop.Seconds(), Grace: FenceGrace.Seconds(),
		ClockMargin: clockMargin.Seconds(),
	}
}

// Expiry is how long a dead agent may still seem alive: a session ends within twice its TTL, and readings of it are a
// little older.
func (t Times) Expiry() time.Duration { return 3 * t.TTL }

// timeRule is an inequality between times.
type timeRule struct {
	name string
	got  time.Duration
	ok   bool
	want string
	hint string // why
}

// rules are the inequalities that times must keep.
func (t Times) rules() []timeRule {
	gone := t.Gone() + clockMargin
	why := fmt.Sprintf("the time that a member without a registry needs to stop: "+
		"fence %s + evidence %s + stop %s + margin %s", t.Fence(), EvidenceValid, FenceStop, clockMargin)
	return []timeRule{
		{"session ttl", t.TTL, t.TTL >= minTTL, "at least " + minTTL.String(), "the registry takes no shorter session"},
		{
			"renewal", t.Renew, t.Renew > 0 && 3*t.Renew <= t.TTL,
			fmt.Sprintf("at most a third of the session ttl %s", t.TTL), "three tries must fit in it",
		},
		{
			"renewal's time-out", t.Request, t.Request > 0 && t.Request < t.Renew,
			fmt.Sprintf("less than the renewal %s", t.Renew), "tries must not overlap",
		},
		{"lost grace", t.Lost, t.Lost >= gone, "at least " + gone.String(), why},
		{
			"lost mass", t.LostMass, t.LostMass >= max(gone, t.Lost), "at least " + max(gone, t.Lost).String(),
			"it is the longer of the two graces, and " + why,
		},
		{"barrier timeout", t.Barrier, t.Barrier > 0, "more than 0", "it bounds the wait for the gang"},
		{
			"blocking read", t.Wait, t.Wait > 0 && t.Wait <= maxWait, "at most " + maxWait.String(),
			"a deleted token must be noticed",
		},
	}
}

// Check returns every inequality that the times break, each naming both sides.
func (t Times) Check() []error {
	var broken []error
	for _, r := range t.rules() {
		if !r.ok {
			broken = append(broken, fmt.Errorf("%s: got %s, want %s; %s", r.name, r.got, r.want, r.hint))
		}
	}
	return broken
}

// Advice names what the times make impossible without making it unsafe; empty when nothing.
func (t Times) Advice() string {
	if need := t.LostMass + relaunch; t.Barrier <= need {
		return fmt.Sprintf("barrier timeout %s: a member that vanishes without proof of death is replaced only after "+
			"%s (lost mass %s + relaunch %s), so the barrier gives up first",
			t.Barrier, need, t.LostMass, relaunch)
	}
	return ""
}

// Times are the protocol's times (doc/protocol.md).
type Times struct {
	TTL      time.Duration // of both sessions
	Renew    time.Duration // how often a session is renewed
	Request  time.Duration // time-out of a renewal
	LostMass time.Duration // Lost while most of the gang is unreachable
	Lost     time.Duration // a member whose session expired, without proof of its death, is lost after this
	Barrier  time.Duration // how long a generation waits for its members
	Wait     time.Duration // of a blocking read
}
