//go:build race

package registry_test

// underRace: the race detector makes a search ten times as slow, and a pure package has no races.
const underRace = true
