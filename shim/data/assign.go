package data

import (
	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/shim/data/transfer"
)

// Assignment assigns files to workers.
type Assignment struct {
	Workers int
	// Chief is how many files worker 0 gets: the first ones, empty files not counted, and no others. 0: worker 0 takes
	// its turn as the others do.
	Chief int
}

// Share are a worker's files: file i belongs to worker i mod Workers, so that each file has exactly one worker. With a
// chief, file i of the rest belongs to worker 1 + i mod (workers - 1), i counted from the first of all files, as HBox
// does. A single worker gets all files.
func (d Assignment) Share(files []transfer.File, worker int) []transfer.File {
	var own []transfer.File
	first := d.chiefs(files)
	for i, f := range files {
		if d.of(i, first) == worker {
			own = append(own, f)
		}
	}
	return own
}

// Idle are the workers without a file, in order.
func (d Assignment) Idle(files []transfer.File) []int {
	busy := make([]bool, max(d.Workers, 0))
	first := d.chiefs(files)
	for i := range files {
		if d.Workers > 0 {
			busy[d.of(i, first)] = true
		}
	}
	var idle []int
	for worker, is := range busy {
		if !is {
			idle = append(idle, worker)
		}
	}
	return idle
}

// nobody owns the files where there is no worker.
const nobody = -1

// of is the worker of file i; the first files are the chief's.
func (d Assignment) of(i, first int) int {
	switch {
	case d.Workers <= 0:
		return nobody
	case d.Chief <= 0 || d.Workers == 1:
		return i % d.Workers
	case i < first:
		return 0
	}
	return 1 + i%(d.Workers-1)
}

// chiefs is how many of the first files worker 0 gets by its number.
func (d Assignment) chiefs(files []transfer.File) int {
	n, counted := 0, 0
	for n < len(files) && counted < d.Chief {
		if files[n].Size != 0 { // a file of unknown size counts as not empty
			counted++
		}
		n++
	}
	return n
}

// LeavesOutputs tells that instances of a component leave outputs somewhere.
func LeavesOutputs(c appdef.Component) bool {
	return c.Instances > 0 && len(c.Settings.Outputs.To) > 0
}
