package conductor

import (
	"slices"
	"strconv"

	"github.com/muster-agent/muster/registry"
)

// holding is the set of steps that one rank could resume from.
type holding struct {
	registry.Instance
	steps   []int64
	saver   bool // it has stored a checkpoint of its own at some time
	unknown bool // it may have more steps that nobody knows about
}

// holdings are those of all ranks that must agree on a step. here is nil if the contents of folders do not matter; over
// tells which ranks have ended.
func (f Facts) holdings(
	d registry.Directive, stored map[registry.Instance]registry.Checkpoint, here func(registry.Instance) *registry.Here,
	over func(registry.Instance) bool,
) []holding {
	stored = registry.Sound(stored)
	shared := sharedSteps(stored)
	var all []holding
	for i, c := range f.Components {
		if !c.Resumes() {
			continue
		}
		var ranks []holding
		savers := 0
		for k := range f.count(d, i) {
			in := registry.Instance{Component: c.Name, Index: k}
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
		all = append(all, slices.DeleteFunc(ranks, func(h holding) bool {
			return len(h.steps) == 0 && (h.unknown || !h.saver && !strict)
		})...)
	}
	return all
}

func holdingOf(
	in registry.Instance, c registry.Checkpoint, shared []int64, here func(registry.Instance) *registry.Here, gen int,
) holding {
	h := holding{Instance: in, saver: c.Own}
	for _, s := range c.Steps {
		if h.saver = h.saver || !s.Shared; s.Kept() && !s.Shared {
			h.steps = append(h.steps, s.Step)
		}
	}
	var found *registry.Here
	if here != nil {
		found = here(in)
	}
	if found != nil && found.Unknown {
		h.unknown, found = true, nil
	}
	if found != nil && !found.Shared {
		h.steps = append(h.steps, trusted(*found, c, gen)...)
		h.saver = h.saver || len(h.steps) > 0
	}
	if h.saver {
		return h
	}
	h.steps = slices.Clone(shared)
	if found != nil && found.Shared {
		h.steps = append(h.steps, trusted(*found, c, gen)...)
	}
	return h
}

// trusted are the steps of a folder that belong to the gang's history. A folder to which a container returns holds what
// was saved before it left, and the gang may have discarded that. Steps that the registry names always count.
func trusted(h registry.Here, c registry.Checkpoint, gen int) []int64 {
	if h.Gen == 0 || h.Gen >= gen-1 {
		return h.Steps
	}
	return slices.DeleteFunc(slices.Clone(h.Steps), func(step int64) bool {
		return !slices.ContainsFunc(c.Steps, func(s registry.CheckpointStep) bool { return s.Step == step })
	})
}

// common is the newest step that all ranks have; false if there is none.
func common(all []holding) (int64, bool) {
	if len(all) == 0 {
		return 0, false
	}
	best, ok := registry.NoStep, false
	for _, step := range all[0].steps {
		if step > best && !slices.ContainsFunc(all[1:], func(h holding) bool {
			return !slices.Contains(h.steps, step)
		}) {
			best, ok = step, true
		}
	}
	return best, ok
}

// resume is the step that a generation resumes from: the newest one that every rank has. It is nil if no rank has any,
// and NoStep if ranks have some and none in common; then why lists the steps of each rank.
func (r *decision) resume() (step *int64, why string) {
	here := func(in registry.Instance) *registry.Here { return r.v.Records[in].Here }
	over := func(in registry.Instance) bool {
		f, _ := r.c.Facts.component(in.Component)
		return resultOf(r.v.Records[in].Member, r.d, f.Scope) != noResult
	}
	all := r.c.Facts.holdings(r.d, r.v.Checkpoints, here, over)
	n, ok := common(all)
	if !ok { // a rank with unknown steps must have what the others have, or fail: nothing is discarded for it
		n, ok = common(slices.DeleteFunc(slices.Clone(all), func(h holding) bool { return h.unknown }))
	}
	if ok {
		return &n, ""
	}
	if !slices.ContainsFunc(all, func(h holding) bool { return len(h.steps) > 0 }) {
		return nil, ""
	}
	none := registry.NoStep
	return &none, differing(all)
}

// differs lists the steps of each rank if ranks have stored checkpoints, the first of them several, and share none: a
// restart would start without a checkpoint. why is empty otherwise.
func (f Facts) differs(all []holding) (why string, first registry.Instance) {
	if _, ok := common(all); ok {
		return "", registry.Instance{}
	}
	for _, h := range all {
		if len(h.steps) >= differingSteps { // a rank that is one step ahead is no cause for alarm
			return differing(all), h.Instance
		}
	}
	return "", registry.Instance{}
}

// Limits of the text of differing, which stands in the directive.
const (
	differingRanks = 8
	differingSteps = 3
)

// differing names the newest steps of each rank.
func differing(all []holding) string {
	return some(all, differingRanks, func(h holding) string { return h.String() + " has " + newestOf(h.steps) })
}

func newestOf(steps []int64) string {
	if len(steps) == 0 {
		return "none"
	}
	steps = slices.Compact(slices.Sorted(slices.Values(steps)))
	text := ""
	if len(steps) > differingSteps {
		text, steps = "… ", steps[len(steps)-differingSteps:]
	}
	for i, s := range steps {
		if i > 0 {
			text += " "
		}
		text += strconv.FormatInt(s, 10)
	}
	return text
}

// sharedSteps are the steps of folders that several ranks share, which some rank has stored for all.
func sharedSteps(stored map[registry.Instance]registry.Checkpoint) []int64 {
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
