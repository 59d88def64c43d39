package registry

import "slices"

// LeastStep is the oldest checkpoint step that a gang could still go on from, of what its instances have stored: the newest that
// all those have which store their own, but no newer than the newest of each. Where nothing is common it is 0: any could be.
func LeastStep(all map[Instance]Checkpoint) int64 {
	least := int64(-1)
	var common []int64
	for _, c := range all {
		own := ownSteps(c)
		if len(own) == 0 {
			for _, s := range c.Steps { // of a folder of all: the newest is what everybody takes
				least = max(least, s.Step)
			}
			continue
		}
		if common == nil {
			common = own
			continue
		}
		if common = slices.DeleteFunc(slices.Clone(common), func(step int64) bool { return !slices.Contains(own, step) }); len(common) == 0 {
			return 0
		}
	}
	if len(common) > 0 {
		step := slices.Max(common)
		if least < 0 || step < least {
			least = step
		}
	}
	return max(least, 0)
}
