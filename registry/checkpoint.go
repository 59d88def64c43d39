package registry

import "slices"

// Here is what an instance has in its folder of checkpoints at the time when it acknowledges a generation: nothing
// older than that runs then.
type Here struct {
	Gen    int     `json:"gen,omitempty"` // the generation that the folder last went on with; 0: none of this app did
	Shared bool    `json:"shared,omitempty"`
	Steps  []int64 `json:"steps"` // the newest, at most MostSteps
	// Unknown: it could not be looked at. What the registry names of the instance counts, and that it has nothing else
	// is not said.
	Unknown bool `json:"unknown,omitempty"`
}

// MostSteps is how many checkpoints are named of one instance.
const MostSteps = 64

// Kept tells that a copy of it is in a store; else it lies in a folder of the host that saved it.
func (s CheckpointStep) Kept() bool { return s.SHA256 != "" }

// Sound are the checkpoints that instances have stored without those that anybody found to be bad.
func Sound(stored map[Instance]Checkpoint) map[Instance]Checkpoint {
	bad := map[BadCopy]bool{}
	for _, c := range stored {
		for _, b := range c.Bad {
			bad[b] = true
		}
	}
	if len(bad) == 0 {
		return stored
	}
	sound := make(map[Instance]Checkpoint, len(stored))
	for in, c := range stored {
		c.Steps = slices.DeleteFunc(slices.Clone(c.Steps), func(s CheckpointStep) bool {
			return bad[BadCopy{s.URI, s.SHA256}]
		})
		sound[in] = c
	}
	return sound
}

// Checkpoint is the key `checkpoint/<c>/<i>`: the newest whole checkpoints that an instance stored.
type Checkpoint struct {
	Version int    `json:"version"`
	Gen     int    `json:"gen"`
	Inc     string `json:"inc"`
	// in the order of their commits: the newest five, and what the gang could go on from
	Steps []CheckpointStep `json:"steps"`
	// Own: it has stored something of its own folder at some time, whatever there is now.
	Own bool `json:"own,omitempty"`
	// Bad are copies, its own or others', that this instance found not to be as they were stored: nobody goes on from
	// those.
	Bad []BadCopy `json:"bad,omitempty"`
}

// CheckpointStep is one whole checkpoint.
type CheckpointStep struct {
	Step   int64  `json:"step"`
	URI    string `json:"uri,omitempty"`
	SHA256 string `json:"sha256,omitempty"`
	// Shared: of a folder of all instances, one of which stores it for all.
	Shared bool `json:"shared,omitempty"`
}

// BadCopy names a copy by where it is and what was committed: another may be stored there later.
type BadCopy struct {
	URI    string `json:"uri"`
	SHA256 string `json:"sha256,omitempty"`
}

// MostBad is how many bad copies a key names, the last found.
const MostBad = 16
