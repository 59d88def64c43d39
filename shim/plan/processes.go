package plan

// processes are those of each container, where there are more than one.
func (b *builder) processes() int { return b.component.Settings.Processes }
