// Package wording holds how muster writes a time, a list and a cause: one form for every verb, log and status line.
//
// It is pure and owns nothing. It promises texts of one line. The agent, its rooms and the verbs call it.
package wording
