// Package journal keeps what happens to an instance: the lines of its events.jsonl, and the warnings that stand.
//
// It owns the file and the list of warnings. It promises one line for each transition of the machine, and a line for
// each warning when it begins, at most every ten minutes, and when it ends. Package shim makes a Journal for an agent's
// life; the rooms that warn are given its methods.
package journal
