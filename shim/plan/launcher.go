package plan

// Launcher is what is known about the launcher of this agent, and the source of each value. `muster plan` prints it
// beside the plan, which contains only what it needs.
type Launcher struct {
	Name  string  `json:"name"`
	Known []Known `json:"known"`
	// Answers are how each answer of an agent is reported to the launcher.
	Answers  []Told   `json:"answers"`
	Survives Survival `json:"survives"`
	Notes    []string `json:"notes"` // what a person should know about this environment
}

// Known is one value and its source: a variable, a file or a flag. An empty value has the source that will set it.
type Known struct {
	What  string `json:"what"`
	Value string `json:"value"`
	From  string `json:"from"`
}

// Told is how one answer is reported to one launcher.
type Told struct {
	Answer  string   `json:"answer"` // done, again, elsewhere, never
	Classes []string `json:"classes"`
	Codes   []int    `json:"codes"`
	By      string   `json:"by"`   // the setting of the job file that makes it so; "": the launcher's own rule
	Does    string   `json:"does"` // what the launcher does then
}

// Survival is what an agent finds unchanged when its launcher starts it again on the same host.
type Survival struct {
	By    string   `json:"by"` // what starts it there; "": nobody does
	Keeps []string `json:"keeps"`
}
