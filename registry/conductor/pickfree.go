package conductor

import (
	"math/rand/v2"
	"slices"

	"github.com/muster-agent/muster/registry"
)

// PickFree orders the instances that a newcomer without an index should try: component by component
// in rank order; in each first the one that the hint names, then the free ones in an order of the
// hint's own, so that a thousand newcomers do not all try the lowest. Instances that are free but
// whose record still wants a proof come after all others. records may lack instances, or be nil; of those
// older than the generation since (Retries.Gen) no result counts.
func PickFree(
	live map[registry.Instance]bool, records map[registry.Instance]registry.Member, claimable []registry.Instance,
	hint uint64, since int,
) []registry.Instance {
	var sure, unsure []registry.Instance
	for start := 0; start < len(claimable); {
		end := start
		for end < len(claimable) && claimable[end].Component == claimable[start].Component {
			end++
		}
		for _, in := range shuffled(claimable[start:end], hint) {
			if live[in] {
				continue
			}
			if m, ok := records[in]; !ok || m.Phase == registry.PhaseLeft || m.Phase == registry.PhaseLost {
				sure = append(sure, in)
			} else if m.Phase != registry.PhaseEnded || resultGen(m) < since {
				unsure = append(unsure, in)
			}
		}
		start = end
	}
	return append(sure, unsure...)
}

func shuffled(in []registry.Instance, hint uint64) []registry.Instance {
	out := slices.Clone(in)
	first := int(hint % uint64(len(out)))
	out[0], out[first] = out[first], out[0]
	rest := out[1:]
	rand.New(rand.NewPCG(hint, uint64(len(in)))).Shuffle(len(rest), func(i, j int) {
		rest[i], rest[j] = rest[j], rest[i]
	})
	return out
}
