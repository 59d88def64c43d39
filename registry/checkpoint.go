package registry

import (
	"cmp"
	"slices"
)

// Here is what an instance has in its checkpoint folder when it acknowledges a generation: nothing older than that
// generation runs then.
type Here struct {
	Gen    int     `json:"gen,omitempty"` // the generation in which the folder was last resumed; 0: none of this app
	Shared bool    `json:"shared,omitempty"`
	Steps  []int64 `json:"steps"` // the newest, at most MostSteps
	// Unknown: the folder could not be read. Then the steps that the registry names for the instance count, and it may
	// have others.
	Unknown bool  `json:"unknown,omitempty"`
	Later   later `json:"-"`
}

// MostSteps is how many checkpoints of one instance its key names.
const MostSteps = 64

// Kept tells whether a store has a copy of it; else it is in a folder of the host that saved it.
func (s CheckpointStep) Kept() bool { return s.SHA256 != "" }

// Sound are the stored checkpoints without those that an instance found to be damaged.
func Sound(stored map[Instance]Checkpoint) map[Instance]Checkpoint {
	bad := map[BadCopy]bool{}
	for _, c := range stored {
		for _, b := range c.Bad {
			bad[b.Copy()] = true
		}
	}
	if len(bad) == 0 {
		return stored
	}
	sound := make(map[Instance]Checkpoint, len(stored))
	for in, c := range stored {
		c.Steps = slices.DeleteFunc(slices.Clone(c.Steps), func(s CheckpointStep) bool {
			return bad[BadCopy{URI: s.URI, SHA256: s.SHA256}]
		})
		sound[in] = c
	}
	return sound
}

// Checkpoint is the key `checkpoint/<c>/<i>`: the newest complete checkpoints that an instance stored.
type Checkpoint struct {
	Gen int    `json:"gen"`
	Inc string `json:"inc"`
	// in the order of their commits: the newest five, and those that the gang could still resume from
	Steps []CheckpointStep `json:"steps"`
	// Own: the instance has at some time stored a checkpoint of its own folder.
	Own bool `json:"own,omitempty"`
	// Bad are copies, its own or others', that this instance found to be damaged: no member resumes from them.
	Bad   []BadCopy `json:"bad,omitempty"`
	Later later     `json:"-"`
}

// Newest is the highest step; nil: there is none.
func (c Checkpoint) Newest() *int64 {
	if len(c.Steps) == 0 {
		return nil
	}
	newest := slices.MaxFunc(c.Steps, func(a, b CheckpointStep) int { return cmp.Compare(a.Step, b.Step) })
	return &newest.Step
}

// CommonStep is the key `common`: what the conductor found in the checkpoints of all members. Members forget by it what
// the gang cannot resume from any more, so that not each of them reads the keys of all.
type CommonStep struct {
	Gen int `json:"gen"` // the generation that it was found in; it says nothing of another
	// Step is the newest step that all ranks share; nil: none.
	Step *int64 `json:"step,omitempty"`
	// Savers is how many instances of a component have stored checkpoints of their own.
	Savers map[string]int `json:"savers,omitempty"`
	// Apart lists the steps of the ranks if these have several and share none; First is the instance that warns of it.
	Apart string `json:"apart,omitempty"`
	First string `json:"first,omitempty"`
	Later later  `json:"-"`
}

// CheckpointStep is one complete checkpoint.
type CheckpointStep struct {
	Step   int64  `json:"step"`
	URI    string `json:"uri,omitempty"`
	SHA256 string `json:"sha256,omitempty"`
	// Shared: it is from a folder that all instances share, and one instance stores it for all.
	Shared bool  `json:"shared,omitempty"`
	Later  later `json:"-"`
}

// BadCopy names a copy by its location and the committed digest: another copy may be stored there later.
type BadCopy struct {
	URI    string `json:"uri"`
	SHA256 string `json:"sha256,omitempty"`
	Later  later  `json:"-"`
}

// Copy is the copy that is meant, without what a later build has noted of it.
func (b BadCopy) Copy() BadCopy { return BadCopy{URI: b.URI, SHA256: b.SHA256} }

// MostBad is how many bad copies a key names, the last found.
const MostBad = 16
