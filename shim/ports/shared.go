package ports

import "hash/fnv"

// Agreed is the port of rs that all callers with the same words choose without asking each other:
// instances on several hosts that should share one number each try it first. 0 when rs is empty.
func (rs Ranges) Agreed(words ...string) int {
	numbers := rs.numbers()
	if len(numbers) == 0 {
		return 0
	}
	h := fnv.New64a()
	for _, w := range words {
		_, _ = h.Write(append([]byte(w), 0)) // it never fails
	}
	return numbers[h.Sum64()%uint64(len(numbers))]
}
