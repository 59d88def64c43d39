// Package samples keeps how much memory, processor time and GPU one instance used, for curves: a value every five
// seconds of the last hour, and averages of what is older.
//
// The ring of samples is bounded in number, and pure. A Keeper reads one at each tick of a goroutine that it owns,
// from Watch until its context ends, and Close waits for it. What cannot be read leaves a gap. The JSON of Table is a
// contract with the page and with scripts. Nothing is written: a new agent begins with an empty ring.
//
// Callers: the agent, and package status, which answers with Tables.
package samples
