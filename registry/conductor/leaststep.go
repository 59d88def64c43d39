package conductor

import (
	"math"
	"slices"

	"github.com/muster-agent/muster/registry"
)

// CommonStep is what the members of the directive's generation must know of each other's checkpoints.
func (f Facts) CommonStep(
	d registry.Directive, stored map[registry.Instance]registry.Checkpoint,
) registry.CommonStep {
	all := f.holdings(d, stored, nil, nil)
	c := registry.CommonStep{Gen: d.Gen}
	if step, ok := common(all); ok {
		c.Step = &step
	}
	for _, h := range all {
		if h.saver {
			if c.Savers == nil {
				c.Savers = map[string]int{}
			}
			c.Savers[h.Component]++
		}
	}
	var first registry.Instance
	if c.Apart, first = f.differs(all); c.Apart != "" {
		c.First = first.String()
	}
	return c
}

// LeastStep is the oldest step of an instance's checkpoints that its gang could still resume from: the newest step that
// all ranks share. It is 0 if they share none yet, or if the conductor has not looked in this generation; and beyond
// every step if the instance resumes from its own newest. A look that is old keeps more than is needed, never less,
// except for an instance that is Alone.
func (f Facts) LeastStep(
	gen int, found registry.CommonStep, own registry.Checkpoint, in registry.Instance,
) int64 {
	c, ok := f.component(in.Component)
	if ok && !c.Resumes() {
		return math.MaxInt64
	}
	if found.Gen != gen || found.Step == nil {
		return 0
	}
	step := *found.Step
	if storesOwn(own) && found.Savers[in.Component] < 2 && c.Ranks != RanksSome && len(own.Steps) > 0 {
		// It may save for all, or be the first: the others then have only older steps.
		step = min(step, own.Steps[max(0, len(own.Steps)-NewestNamed)].Step)
	}
	return step
}

// Alone tells whether an instance, as far as the conductor knew, is the only one of its component that stores, and has
// more than its key names at least. Whether another has begun meanwhile, with older steps, it must see for itself
// before it forgets any: from then on the gang resumes from a step of both.
func (f Facts) Alone(gen int, found registry.CommonStep, own registry.Checkpoint, in registry.Instance) bool {
	c, ok := f.component(in.Component)
	return ok && c.Resumes() && c.Ranks != RanksSome && found.Gen == gen && found.Savers[in.Component] < 2 &&
		storesOwn(own) && len(own.Steps) > NewestNamed
}

// storesOwn tells whether an instance has stored a checkpoint of its own.
func storesOwn(c registry.Checkpoint) bool {
	return c.Own || slices.ContainsFunc(c.Steps, func(s registry.CheckpointStep) bool { return !s.Shared })
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
