// Package wording holds how muster writes a time, a number with its noun, a list and a cause: one form for every verb, log
// and status line. It is pure.
package wording
