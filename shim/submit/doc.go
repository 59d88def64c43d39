// Package submit brings an APP to a launcher and waits for its end.
//
// Job is what a launcher is to run, and writes its files (job.go). Options.Run puts what the hosts need into the
// run's folder of the store (artifacts.go, store.go), has the launcher start the job (submission.go), and either
// prints how to follow it or waits: watcher.go reports how the run goes, waiter.go decides when it is over and
// answers Ctrl-C. tidy.go removes the folders of earlier runs that are over.
//
// It owns the run's folder in the store, a temporary folder, and the goroutines of tasks.go, which end before the
// waiter returns. It promises that Ctrl-C before the start leaves nothing behind, and that no run loses a file to
// another. It decides nothing about the run itself: that is the conductor's. The verbs render, submit, hbox-submit
// and status call it.
package submit
