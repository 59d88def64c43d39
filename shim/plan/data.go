package plan

// inputs are what is dealt out to the instance; nil: nothing.
func (b *builder) inputs() *Inputs { return nil }

// outputs are what the instance leaves; nil: nothing.
func (b *builder) outputs() *Outputs { return nil }
