package conductor

import (
	"time"

	"github.com/muster-agent/muster/registry"
)

// View is what the conductor has read. Its caller updates it between Steps; a Step keeps nothing of it except what
// effects carry (the directive's maps). Times come from the same clock as Step's now, taken at the end of a read.
type View struct {
	Directive      registry.Directive
	DirectiveIndex uint64

	// Ready holds the keys of ready/<ReadyGen>/, read at ReadyAt. If ReadyGen is not the directive's generation, they
	// count as not read.
	Ready    map[registry.Instance]bool
	ReadyGen int
	ReadyAt  time.Time

	// Records are the members' records read so far, each with its time and whether its agent's session lives. AllAt is
	// the last reading of all records (zero: never): an instance that it did not find has none. A record that was read
	// alone and does not exist has an empty Inc.
	Records map[registry.Instance]Record
	AllAt   time.Time

	// Checkpoints are the keys of checkpoint/, read at CheckpointsAt (zero: never).
	Checkpoints   map[registry.Instance]registry.Checkpoint
	CheckpointsAt time.Time

	// Roster is the last sealed roster, which the directive names; nil: not read.
	Roster *registry.Roster

	Asks []registry.Ask

	// Trouble is how long the registry gave no answers since the last Step, as far as that is over. No member could
	// show meanwhile that it is alive: all loss timers are prolonged by it.
	Trouble time.Duration
}

// Record is what one transaction read of an instance: its member record with its ModifyIndex, and whether its key below
// live/ is there.
type Record struct {
	registry.Member
	Index uint64
	Live  bool
	At    time.Time
}

// Effect is one action for the conductor's caller. Each write is one transaction. If it is refused, read the directive
// and everything else again, then Step.
type Effect interface{ effect() }

// The effects. Index is the ModifyIndex of the directive that the decision was based on, for check-index.
type (
	// ReadReady asks for the keys of ready/<gen>/ of the directive's generation now.
	ReadReady struct{}
	// ReadRecords asks for member records, each with its live key in one consistent transaction: All, or those of Of.
	// With Checkpoints the keys of checkpoint/ as well.
	ReadRecords struct {
		All         bool
		Of          []registry.Instance
		Checkpoints bool
	}
	// ReadRoster asks for the sealed roster.
	ReadRoster struct{ Ref registry.RosterRef }
	// Seal is T5. When it is accepted Roster is the view's roster.
	Seal struct {
		Index     uint64
		Directive registry.Directive
		Roster    registry.Roster
		Packed    registry.Packed
	}
	// Rebuild is T11.
	Rebuild struct {
		Index     uint64
		Directive registry.Directive
	}
	// Retarget rewrites the run directive in its generation: flex up.
	Retarget struct {
		Index     uint64
		Directive registry.Directive
	}
	// Release rewrites the run directive in its generation: further components may start.
	Release struct {
		Index     uint64
		Directive registry.Directive
	}
	// Begin rewrites the run directive in its generation: a save begins.
	Begin struct {
		Index     uint64
		Directive registry.Directive
	}
	// End is T12: the directive with its verdict, and `cas verdict/<run> 0`.
	End struct {
		Index     uint64
		Directive registry.Directive
		Verdict   registry.Verdict
	}
	// Lost is T7: the record to write under check-index Index and check-not-exists live.
	Lost struct {
		Instance registry.Instance
		Index    uint64
		Member   registry.Member
	}
	// DropAsk deletes an ask that is served or can never be.
	DropAsk struct{ Ask registry.Ask }
	// Wake asks for a Step at that time, if nothing else causes one earlier.
	Wake struct{ At time.Time }
	// CleanUp removes ready/, ask/ and all rosters but KeepRoster.
	CleanUp struct{ KeepRoster string }
	// StepDown is T16: nobody needs a conductor any more.
	StepDown struct{}
)

func (ReadReady) effect()   {}
func (ReadRecords) effect() {}
func (ReadRoster) effect()  {}
func (Seal) effect()        {}
func (Rebuild) effect()     {}
func (Retarget) effect()    {}
func (Release) effect()     {}
func (Begin) effect()       {}
func (End) effect()         {}
func (Lost) effect()        {}
func (DropAsk) effect()     {}
func (Wake) effect()        {}
func (CleanUp) effect()     {}
func (StepDown) effect()    {}
