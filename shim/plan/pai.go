package plan

// pai are the facts of a PAI job; nil for any other.
func (b *builder) pai() *PAI { return nil }
