package data

import (
	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/shim/data/transfer"
)

// Deal is how files are dealt out among workers.
type Deal struct {
	Workers int
	// Chief is how many files worker 0 gets, the first ones, those without a byte not counted; it gets no others. 0:
	// its turn comes as everybody's.
	Chief int
}

// Share are a worker's files: file i is worker i mod Workers', so that each is somebody's, exactly once. With a
// chief's, file i of the rest goes to worker 1 + i mod (workers - 1), i counted from the first of all, as HBox has it.
// A worker alone gets everything.
func (d Deal) Share(files []transfer.File, worker int) []transfer.File {
	var own []transfer.File
	first := d.chiefs(files)
	for i, f := range files {
		if d.of(i, first) == worker {
			own = append(own, f)
		}
	}
	return own
}

// Idle are the workers that are left without a file, in order.
func (d Deal) Idle(files []transfer.File) []int {
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

// nobody is whose a file is where there is no worker.
const nobody = -1

// of is whose file i is, of which the first ones are the chief's.
func (d Deal) of(i, first int) int {
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

// chiefs is how many of the first files are worker 0's by its number.
func (d Deal) chiefs(files []transfer.File) int {
	n, counted := 0, 0
	for n < len(files) && counted < d.Chief {
		if files[n].Size != 0 { // of one whose size is not known something is expected
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
