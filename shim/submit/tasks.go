package submit

import "sync"

// tasks run beside a loop, one of each kind at a time. What follows from a task the loop does: it receives that from
// then.
type tasks struct {
	busy map[string]bool
	then chan func()
	wg   sync.WaitGroup // of all tasks: who owns the loop waits for it
}

// mostKinds is the number of kinds of tasks: what one has found waits for the loop, and no task waits for that.
const mostKinds = 5

func (b *tasks) start(kind string, work func() (then func())) {
	if b.busy == nil {
		b.busy, b.then = map[string]bool{}, make(chan func(), mostKinds)
	}
	if b.busy[kind] {
		return
	}
	b.busy[kind] = true
	b.wg.Go(func() {
		then := work()
		b.then <- func() {
			b.busy[kind] = false
			then()
		}
	})
}
