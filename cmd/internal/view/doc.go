// Package view turns the facts of an app into what `muster status` shows: one value, printed as a table for people or
// as JSON for programs. The fields of App are a contract (doc/manual.md). It asks nobody and owns nothing.
//
// Callers: status, ps, submit and its follower, and Slider's status.
package view
