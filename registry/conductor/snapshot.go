package conductor

import (
	"time"

	"github.com/muster-agent/muster/registry"
)

// Snapshot is what one transaction read before a claim (T1), plus the facts that the newcomer found out for itself.
// Indexes are ModifyIndex; 0 means that the key does not exist.
type Snapshot struct {
	App              *registry.AppRecord
	AppIndex         uint64
	Directive        *registry.Directive
	DirectiveIndex   uint64
	DirectiveSession string // of the conductor, "" when nobody conducts

	// Instance is the index looked at: Me.Instance, or the one picked among the free.
	Instance    registry.Instance
	Member      *registry.Member
	MemberIndex uint64
	LiveSession string // session that locks live/<c>/<i>, "" when there is no such key
	LiveInc     string // its value
	LiveIndex   uint64

	// Answers: the holder's agent answered at its API with that incarnation.
	Answers bool
	// AnyLive: there is some key below live/; read only when the run differs.
	AnyLive bool
	// Asks of kind gone (P5); others are ignored.
	Asks []registry.Ask
	// Step is the newest checkpoint step of this instance, 0 when unknown.
	Step int64
	// Now is the wall time, for the budget's window and for display.
	Now time.Time
}

// Life is what /proc says of a process.
type Life int

// The answers. LifeUnknown proves nothing.
const (
	LifeUnknown Life = iota
	LifeDead
	LifeAlive
)

// Proof names what shows that the old holder's process is gone (protocol 4).
type Proof string

// The proofs.
const (
	ProofNone     Proof = ""
	ProofFree     Proof = "P0" // no record, or it says left or lost
	ProofRecord   Proof = "P1" // the record itself says that the process is gone
	ProofProcess  Proof = "P2" // same machine, boot and pid namespace; not in /proc
	ProofBoot     Proof = "P3" // same machine, another boot
	ProofSlot     Proof = "P4" // the launcher's word: a later occupant of the same slot
	ProofOperator Proof = "P5" // the operator's word
)

// Admission is what a newcomer does next: Found, NewRun, Claim, Standby, Refuse, Wait or Retry.
type Admission interface{ decision() }

// The decisions.
type (
	// Found: nobody has founded the app (T2). Both values are what to write.
	Found struct {
		App       registry.AppRecord
		Directive registry.Directive
	}
	// NewRun: the last run is over and this one follows it; elect (T6), then T15 with these values.
	NewRun struct {
		App       registry.AppRecord
		AppIndex  uint64
		Directive registry.Directive
		// Free are the indexes that nobody may hold when it is written: those of a run without a verdict, which
		// can be claimed until then. After a verdict none can, and its members may still be on their way out.
		Free []registry.Instance
	}
	// Claim: the index is provably nobody's. First clear what is left of the old process (Clear),
	// then destroy the session Evict (T8), then T3, then destroy the session Unseat: another conducts at once.
	Claim struct {
		Instance       registry.Instance
		Proof          Proof
		Evict          string            // session to destroy first; "": none
		Unseat         string            // session to destroy afterwards: the holder has died as the conductor
		Clear          *registry.Process // kill these and prove them gone first; nil: nothing can be left here
		MembersIndex   uint64            // 0: check-not-exists
		DirectiveIndex uint64
		Record         registry.Member // what T3 writes
	}
	// Standby: somebody else holds the index, or held it and is not proved gone.
	Standby struct{ Holder registry.Member }
	// Refuse: *HeldError, *DigestError, *TimesError, *RunError, *FinishedError or *IndexError.
	Refuse struct{ Err error }
	// Wait: a result that still counts stands in the index; look again when the directive changes.
	Wait struct{ Why string }
	// Retry: what was read does not fit together; look again (and pick another index, if picked).
	Retry struct{ Why string }
)

func (Found) decision()   {}
func (NewRun) decision()  {}
func (Claim) decision()   {}
func (Standby) decision() {}
func (Refuse) decision()  {}
func (Wait) decision()    {}
func (Retry) decision()   {}
