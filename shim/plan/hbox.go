package plan

// hbox are the facts of an HBox submission; nil for any other.
func (b *builder) hbox() *HBox { return nil }
