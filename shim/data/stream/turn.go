package stream

// Turn is a reader's place among those that splits are dealt out to.
type Turn struct {
	Workers, Worker int
	Shuffle         bool // in turn; else in blocks, of which the first have one more where they do not come out even
}

// has tells whether the split with this number of so many is the reader's.
func (t Turn) has(i, all int) bool {
	if t.Shuffle {
		return i%t.Workers == t.Worker
	}
	from, to := t.block(all)
	return from <= i && i < to
}

// block is the reader's where there are so many and they are dealt out in blocks.
func (t Turn) block(all int) (from, to int) {
	each, more := all/t.Workers, all%t.Workers
	from = t.Worker*each + min(t.Worker, more)
	to = from + each
	if t.Worker < more {
		to++
	}
	return from, to
}

// Deal gives the reader's own, in their order. Each of all is somebody's, exactly once.
func (t Turn) Deal(all []Split) []Split {
	var own []Split
	for i, s := range all {
		if t.has(i, len(all)) {
			own = append(own, s)
		}
	}
	return own
}
