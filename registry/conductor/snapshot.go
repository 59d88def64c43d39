package conductor

import (
	"time"

	"github.com/muster-agent/muster/registry"
)

// Snapshot is what one transaction read before a claim (T1), plus the facts that the newcomer found out itself. Indexes
// are ModifyIndex; 0 means that the key does not exist.
type Snapshot struct {
	App              *registry.AppRecord
	AppIndex         uint64
	Directive        *registry.Directive
	DirectiveIndex   uint64
	DirectiveSession string // of the conductor, "" when nobody conducts

	// Instance is the index in question: Newcomer.Instance, or one that PickFree proposed.
	Instance    registry.Instance
	Member      *registry.Member
	MemberIndex uint64
	LiveSession string // session that locks live/<c>/<i>, "" when there is no such key
	LiveInc     string // its value
	LiveIndex   uint64

	// Answers: the holder's agent answered at its API with that incarnation.
	Answers bool
	// AnyLive: some key below live/ exists; read only if the run differs or nobody conducts.
	AnyLive bool
	// Verdict is that of the newcomer's own run, nil while it has none.
	Verdict *registry.Verdict
	// Asks of kind gone (P5); others are ignored.
	Asks []registry.Ask
	// Seen: this newcomer has seen a directive of the app before.
	Seen bool
	// Holders are the instances of the app in whose names others hold sessions; where there is a directive, only those
	// of which the registry does not know that they hold their index. Read only if MayHaveLost.
	Holders []string
	// Step is the newest checkpoint step of this instance, 0 when unknown.
	Step int64
	// Now is the wall time, for the budget's window and for display.
	Now time.Time
}

// Life is what /proc says of a process.
type Life int

// The states of a process. LifeUnknown proves nothing.
const (
	LifeUnknown Life = iota
	LifeDead
	LifeAlive
)

// Proof names what shows that the old holder's process is gone (doc/protocol.md).
type Proof string

// The proofs.
const (
	ProofNone     Proof = ""
	ProofFree     Proof = "P0" // no record, or its phase is left or lost
	ProofRecord   Proof = "P1" // the record itself reports that the process is gone
	ProofProcess  Proof = "P2" // same machine, boot and pid namespace; not in /proc
	ProofBoot     Proof = "P3" // same machine, another boot
	ProofSlot     Proof = "P4" // the launcher: a later container has the same slot
	ProofOperator Proof = "P5" // the operator declared it gone
)

// Deserted tells that nobody takes part in the run any more: what was asked of it was asked of others.
func (l Snapshot) Deserted() bool {
	return l.Directive != nil && l.DirectiveSession == "" && !l.AnyLive
}

// MayHaveLost tells that the registry may have had more than it has now: no app at all, an older run than that of the
// newcomer, or no record of an index although the gang runs.
func (l Snapshot) MayHaveLost(me Newcomer) bool {
	if l.App == nil || l.Directive == nil {
		return l.App == nil && l.Directive == nil
	}
	return begins(l, me) || l.Member == nil && (l.Directive.Act == registry.ActRun || l.Directive.Adopted)
}

// Admission is what a newcomer does next: Found, NewRun, Claim, Standby, Refuse, Wait, Vanished or Retry.
type Admission interface{ decision() }

// The decisions.
type (
	// Found: there is no app yet (T2). Both values are what to write.
	Found struct {
		App       registry.AppRecord
		Directive registry.Directive
	}
	// NewRun: the last run is over and this one follows. First elect (T6), then write these values (T15).
	NewRun struct {
		App       registry.AppRecord
		AppIndex  uint64
		Directive registry.Directive
		// Free are the indexes that must have no holder at the time of the write: those of a run without a verdict,
		// which can be claimed until then. After a verdict no index can be claimed, and members may still be leaving.
		Free []registry.Instance
	}
	// Claim: the index is proved to be free. Clear the rest of the old process (Clear), destroy the session Evict (T8),
	// write the claim (T3), then destroy the session Unseat, so that another agent conducts at once.
	Claim struct {
		Instance registry.Instance
		Proof    Proof
		Evict    string // session to destroy first; "": none
		Unseat   string // session to destroy afterwards: the dead holder was the conductor
		// processes to kill and prove gone first; nil: nothing can be left on this host
		Clear          *registry.Process
		MembersIndex   uint64 // 0: check-not-exists
		DirectiveIndex uint64
		Record         registry.Member // what T3 writes
	}
	// Standby: another agent holds the index, or held it and is not proved gone.
	Standby struct{ Holder registry.Member }
	// Refuse: *HeldError, *DigestError, *TimesError, *RunError, *FinishedError or *IndexError.
	Refuse struct{ Err error }
	// Wait: the index has a result that still counts; look again when the directive changes.
	Wait struct{ Why string }
	// Vanished: the registry no longer knows the app, or the holder of the index, though its agents live. Nobody may
	// found or claim it anew; look again.
	Vanished struct{ Why string }
	// Retry: the readings contradict each other; look again (and pick another index, if it was picked).
	Retry struct{ Why string }
)

func (Found) decision()    {}
func (NewRun) decision()   {}
func (Claim) decision()    {}
func (Standby) decision()  {}
func (Refuse) decision()   {}
func (Wait) decision()     {}
func (Vanished) decision() {}
func (Retry) decision()    {}
