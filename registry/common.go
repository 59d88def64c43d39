package registry

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// How the checkpoints of a component's ranks belong together (ComponentFacts.Ranks).
const (
	RanksAuto = "auto" // where several have stored their own, each must have a step; one alone saves for all
	RanksAll  = "all"  // each must have a step
	RanksSome = "some" // those who have never stored one do not count
	RanksEach = "each" // each goes on from its own newest
)

// NoStep is what a gang resumes that begins anew although something is stored.
const NoStep = int64(-1)

// Here is what an instance has in its folder of checkpoints at the time when it acknowledges a generation: nothing older than that
// runs then.
type Here struct {
	Gen    int     `json:"gen,omitempty"` // the generation that the folder last went on with; 0: none of this app did
	Shared bool    `json:"shared,omitempty"`
	Steps  []int64 `json:"steps"` // the newest, at most MostSteps
	// Unknown: it could not be looked at. What the registry names of the instance counts, and that it has nothing else is not said.
	Unknown bool `json:"unknown,omitempty"`
}

// MostSteps is how many checkpoints are named of one instance.
const MostSteps = 64

// Kept tells that a copy of it is in a store; else it lies in a folder of the host that saved it.
func (s CheckpointStep) Kept() bool { return s.SHA256 != "" }

// holding is what one rank could go on from.
type holding struct {
	Instance
	steps []int64
	saver bool // it has stored something of its own at some time
	dark  bool // what else it has, nobody knows
}

// Resumes tells that a rank goes on from a step that is the whole gang's.
func (f ComponentFacts) Resumes() bool {
	return f.Waited && f.Scope != ScopeInstance && f.Ranks != RanksEach
}

// holdings are those of all ranks that must agree. here is nil where nobody asks what lies in folders; over tells who is at work
// no more.
func (f Facts) holdings(d Directive, stored map[Instance]Checkpoint, here func(Instance) *Here, over func(Instance) bool) []holding {
	stored = Sound(stored)
	shared := sharedSteps(stored)
	var all []holding
	for i, c := range f.Components {
		if !c.Resumes() {
			continue
		}
		var ranks []holding
		savers := 0
		for k := range f.count(d, i) {
			in := Instance{Component: c.Name, Index: k}
			if over != nil && over(in) {
				continue
			}
			h := holdingOf(in, stored[in], shared, here, d.Gen)
			if h.saver {
				savers++
			}
			ranks = append(ranks, h)
		}
		strict := c.Ranks == RanksAll || c.Ranks != RanksSome && savers > 1
		all = append(all, slices.DeleteFunc(ranks, func(h holding) bool { return len(h.steps) == 0 && (h.dark || !h.saver && !strict) })...)
	}
	return all
}

func holdingOf(in Instance, c Checkpoint, shared []int64, here func(Instance) *Here, gen int) holding {
	h := holding{Instance: in, saver: c.Own}
	for _, s := range c.Steps {
		if h.saver = h.saver || !s.Shared; s.Kept() && !s.Shared {
			h.steps = append(h.steps, s.Step)
		}
	}
	var found *Here
	if here != nil {
		found = here(in)
	}
	if found != nil && found.Unknown {
		h.dark, found = true, nil
	}
	if found != nil && !found.Shared {
		h.steps = append(h.steps, found.believed(c, gen)...)
		h.saver = h.saver || len(h.steps) > 0
	}
	if h.saver {
		return h
	}
	h.steps = slices.Clone(shared)
	if found != nil && found.Shared {
		h.steps = append(h.steps, found.believed(c, gen)...)
	}
	return h
}

// believed are the steps of a folder that are of the gang's branch: a folder that a container comes back to has what was saved
// before it went away, and the gang may have given that up. What the registry has of those counts all the same.
func (h Here) believed(c Checkpoint, gen int) []int64 {
	if h.Gen == 0 || h.Gen >= gen-1 {
		return h.Steps
	}
	return slices.DeleteFunc(slices.Clone(h.Steps), func(step int64) bool {
		return !slices.ContainsFunc(c.Steps, func(s CheckpointStep) bool { return s.Step == step })
	})
}

// common is the newest step that all have; false: there is none.
func common(all []holding) (int64, bool) {
	if len(all) == 0 {
		return 0, false
	}
	best, ok := NoStep, false
	for _, step := range all[0].steps {
		if step > best && !slices.ContainsFunc(all[1:], func(h holding) bool { return !slices.Contains(h.steps, step) }) {
			best, ok = step, true
		}
	}
	return best, ok
}

// resume is what a generation goes on from: the newest step that every rank has, nil where nobody has any, NoStep where ranks
// have some and none in common. Then why says who has which.
func (r *ruling) resume() (step *int64, why string) {
	here := func(in Instance) *Here { return r.v.Records[in].Here }
	over := func(in Instance) bool {
		f, _ := r.c.Facts.component(in.Component)
		return settled(r.v.Records[in].Member, r.d, f.Scope) != unsettled
	}
	all := r.c.Facts.holdings(r.d, r.v.Checkpoints, here, over)
	n, ok := common(all)
	if !ok { // one that nobody knows of must have what the others have, or fails: nothing is thrown away for it
		n, ok = common(slices.DeleteFunc(slices.Clone(all), func(h holding) bool { return h.dark }))
	}
	if ok {
		return &n, ""
	}
	if !slices.ContainsFunc(all, func(h holding) bool { return len(h.steps) > 0 }) {
		return nil, ""
	}
	none := NoStep
	return &none, apart(all)
}

// Apart tells who has which where ranks have stored steps by now, first several of them, and none is everybody's: a restart would
// begin anew. Empty: nothing of the kind.
func (f Facts) Apart(d Directive, stored map[Instance]Checkpoint) (why string, first Instance) {
	all := f.holdings(d, stored, nil, nil)
	if _, ok := common(all); ok {
		return "", Instance{}
	}
	for _, h := range all {
		if len(h.steps) >= apartSteps { // one that is a step ahead is no cause for alarm
			return apart(all), h.Instance
		}
	}
	return "", Instance{}
}

// Bounds of apart: it stands in the directive.
const (
	apartRanks = 8
	apartSteps = 3
)

// apart names each rank's newest steps.
func apart(all []holding) string {
	var parts []string
	for i, h := range all {
		if i == apartRanks {
			parts = append(parts, fmt.Sprintf("and %d more", len(all)-i))
			break
		}
		parts = append(parts, h.String()+" has "+newestOf(h.steps))
	}
	return strings.Join(parts, ", ")
}

func newestOf(steps []int64) string {
	if len(steps) == 0 {
		return "none"
	}
	steps = slices.Compact(slices.Sorted(slices.Values(steps)))
	text := ""
	if len(steps) > apartSteps {
		text, steps = "… ", steps[len(steps)-apartSteps:]
	}
	for i, s := range steps {
		if i > 0 {
			text += " "
		}
		text += strconv.FormatInt(s, 10)
	}
	return text
}

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
		c.Steps = slices.DeleteFunc(slices.Clone(c.Steps), func(s CheckpointStep) bool { return bad[BadCopy{s.URI, s.SHA256}] })
		sound[in] = c
	}
	return sound
}

// sharedSteps are those that anybody has put into a store for all.
func sharedSteps(stored map[Instance]Checkpoint) []int64 {
	var all []int64
	for _, c := range stored {
		for _, s := range c.Steps {
			if s.Shared && s.Kept() {
				all = append(all, s.Step)
			}
		}
	}
	return all
}
