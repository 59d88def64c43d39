package plan

// RisingVariable names, with blanks between, the variables that rise by one from each process of a
// container to the next. A framework sets it; what it says of them holds for the first process.
const RisingVariable = "MUSTER_PROC_RANKS"

// processes are those of each container, where there are more than one.
func (b *builder) processes() int { return b.component.Settings.Processes }
