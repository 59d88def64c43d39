package conductor

import (
	"math/rand/v2"
	"slices"

	"github.com/muster-agent/muster/registry"
)

// PickFree orders the instances that a newcomer without an index should try, component by component in rank order. In
// each component the instance that the hint names comes first, then the free ones in an order that depends on the hint,
// so that a thousand newcomers do not all try the lowest. Free instances whose record still needs a proof come last.
// records may be incomplete or nil. Results older than the generation since (Retries.Gen) do not count.
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
