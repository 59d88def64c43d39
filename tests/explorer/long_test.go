//go:build long && !race

package explorer

import "testing"

// TestWalkLong takes a hundred times as many random walks as TestWalk, with seeds of its own.
func TestWalkLong(t *testing.T) {
	*firstSeed, *walks = 100_000, 100**walks
	TestWalk(t)
}
