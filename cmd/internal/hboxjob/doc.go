// Package hboxjob is what `muster hbox-submit` makes of a submission beside a run: the app package that the job is run
// from (Package), and the progress that hbox-submit prints while it runs (Progress).
//
// A package lies in a folder of its own below the run's work folder; its maker removes it. Progress owns one goroutine,
// which the function that Follow returns waits for.
package hboxjob
