package stream

// Turn is a reader's number among the readers that splits are assigned to.
type Turn struct {
	Workers, Worker int
	Shuffle         bool // in turn; otherwise in blocks, of which the first ones may have one more
}

// Has tells whether a split, by its number and the number of all, is the reader's.
func (t Turn) Has(i, all int) bool {
	if t.Shuffle {
		return i%t.Workers == t.Worker
	}
	from, to := t.block(all)
	return from <= i && i < to
}

// Count is how many of all splits are the reader's.
func (t Turn) Count(all int) (own int) {
	for i := range all {
		if t.Has(i, all) {
			own++
		}
	}
	return own
}

// block is the reader's range of all splits, from (included) to to (excluded), when splits are assigned in blocks.
func (t Turn) block(all int) (from, to int) {
	each, more := all/t.Workers, all%t.Workers
	from = t.Worker*each + min(t.Worker, more)
	to = from + each
	if t.Worker < more {
		to++
	}
	return from, to
}

// assign gives the reader its splits, in order. Each split belongs to exactly one reader.
func assign[S any](t Turn, all []S) []S {
	var own []S
	for i, s := range all {
		if t.Has(i, len(all)) {
			own = append(own, s)
		}
	}
	return own
}
