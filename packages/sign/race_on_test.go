//go:build race

package sign

// underRace: what minisign makes of a password takes 3 s and 1 GiB, under the race detector 35 s and 6 GiB, and is no
// code of ours.
const underRace = true
