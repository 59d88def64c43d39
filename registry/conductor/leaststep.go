package conductor

import (
	"math"
	"slices"

	"github.com/muster-agent/muster/registry"
)

// LeastStep is the oldest step of an instance's checkpoints that its gang could still resume from: the newest step that
// all ranks share. It is 0 if they share none yet, and beyond every step if the instance resumes from its own newest.
func (f Facts) LeastStep(
	d registry.Directive, stored map[registry.Instance]registry.Checkpoint, in registry.Instance,
) int64 {
	c, ok := f.component(in.Component)
	if ok && !c.Resumes() {
		return math.MaxInt64
	}
	all := f.holdings(d, stored, nil, nil)
	step, ok := common(all)
	if !ok {
		return 0
	}
	savers, one := 0, false
	for _, h := range all {
		if h.saver && h.Component == in.Component {
			savers++
			one = one || h.Instance == in
		}
	}
	if steps := stored[in].Steps; one && savers == 1 && c.Ranks != RanksSome && len(steps) > 0 {
		// It may save for all, or be the first: the others then have only older steps.
		step = min(step, steps[max(0, len(steps)-NewestNamed)].Step)
	}
	return step
}

// NewestNamed is how many of an instance's checkpoints its key names at least.
const NewestNamed = 5

// Named are the checkpoints that an instance's key keeps, in the order of their commits: the newest five, and all from
// step least on. If there are more than MostSteps, it drops the latest ones before the newest five: a rank that is
// behind reaches the older steps first.
func Named(steps []registry.CheckpointStep, least int64) []registry.CheckpointStep {
	last := max(0, len(steps)-NewestNamed)
	var kept []registry.CheckpointStep
	for i, s := range steps {
		if i >= last || s.Step >= least {
			kept = append(kept, s)
		}
	}
	if over := len(kept) - registry.MostSteps; over > 0 {
		end := len(kept) - NewestNamed
		kept = slices.Delete(kept, end-over, end)
	}
	return kept
}
