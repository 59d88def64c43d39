// Package silence notices that a running program shows no sign of life: no output, no progress, no checkpoint.
//
// Follow looks again and again until its context ends, and owns nothing beyond that; the rule is watch.look. It does
// nothing to the program. The agent gives it the signs and tells users what it finds.
package silence
