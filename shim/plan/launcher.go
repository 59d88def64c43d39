package plan

// Launcher is what is known of who started an agent here, and where from. `muster plan` prints it beside the plan,
// which has of it only what it builds on.
type Launcher struct {
	Name  string  `json:"name"`
	Known []Known `json:"known"`
	// Answers are how it is told what an agent's end means, one for each answer.
	Answers  []Told   `json:"answers"`
	Survives Survival `json:"survives"`
	Notes    []string `json:"notes"` // what a person should be told of this environment
}

// Known is one value, and where it came from: a variable, a file, a flag, or who settles it when nobody has given one.
// The value is then empty.
type Known struct {
	What  string `json:"what"`
	Value string `json:"value"`
	From  string `json:"from"`
}

// Told is how one launcher is told one answer.
type Told struct {
	Answer  string   `json:"answer"` // done, again, elsewhere, never
	Classes []string `json:"classes"`
	Codes   []int    `json:"codes"`
	By      string   `json:"by"`   // the word of the job file that makes it so; "": the launcher's own rule
	Does    string   `json:"does"` // what it does then
}

// Survival is what an agent finds as it was when its launcher starts it again on the same host.
type Survival struct {
	By    string   `json:"by"` // what starts it there; "": nobody does
	Keeps []string `json:"keeps"`
}
