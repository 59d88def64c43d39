package registry

import (
	"encoding/json"
	"time"
)

// Outcome is how a run ended.
type Outcome string

// The outcomes.
const (
	Succeeded Outcome = "succeeded"
	Failed    Outcome = "failed"
	Stopped   Outcome = "stopped"
)

// Class is the kind of a failure. Exit codes and retries depend on it.
type Class string

// The classes of a verdict, and those that only reports use.
const (
	ClassNone         Class = ""
	ClassApp          Class = "app-error"
	ClassOOM          Class = "out-of-memory"
	ClassGPU          Class = "gpu-fault"
	ClassHost         Class = "host-lost"
	ClassNetwork      Class = "network"
	ClassData         Class = "data"
	ClassImage        Class = "image"
	ClassPreempted    Class = "preempted"
	ClassStopped      Class = "stopped"
	ClassTimeout      Class = "timeout"
	ClassDefinition   Class = "definition"
	ClassNotPermitted Class = "not-permitted"
	ClassMuster       Class = "muster"

	ClassLauncher Class = "launcher" // TERM from outside
	ClassRegistry Class = "registry" // no contact to the registry
	ClassFlex     Class = "flex"
	ClassMismatch Class = "mismatch" // the roster's row belongs to another
)

// MarshalJSON writes no class as null.
func (c Class) MarshalJSON() ([]byte, error) {
	if c == ClassNone {
		return []byte("null"), nil
	}
	return json.Marshal(string(c))
}

// Verdict is the one outcome of a run, with its cause.
type Verdict struct {
	Version int         `json:"version"`
	Run     string      `json:"run"`
	Outcome Outcome     `json:"outcome"`
	Class   Class       `json:"class"` // null when succeeded
	Cause   string      `json:"cause"`
	First   string      `json:"first,omitempty"` // instance
	Exit    *MemberExit `json:"exit,omitempty"`  // of First
	Advice  string      `json:"advice,omitempty"`
	Retry   bool        `json:"retry"`
	Gen     int         `json:"generation"`
	By      string      `json:"by,omitempty"` // what asked for the end of a stopped run: stop, interrupt
	At      time.Time   `json:"at"`
	Later   later       `json:"-"`
}

// CasualtiesMark precedes, in the cause of a success, the instances that failed on the way.
const CasualtiesMark = "; failed: "
