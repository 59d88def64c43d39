package appdef

import "strings"

// Key is one setting that a definition may have beside those of Slider. The table of keys is
// what the loader obeys and what the manual prints.
type Key struct {
	Name    string // muster.restart.budget; a family ends in `.*`: muster.env.*
	Default string // as the manual prints it; empty: none
	Meaning string
	Global  bool     // holds for the whole app; else for a component, and global is its default
	Limit   bool     // at home in resources; else in appConfig. Either is accepted in both.
	Values  []string // the only values there are; none: as Meaning says
	Idle    bool     // understood and kept, but nothing acts on it yet: setting it is a warning
	Instead string   // of an idle key: what there is without it, for the warning

	// Exactly one of the two is set; they store a value or say what they want instead.
	app       func(*AppSettings, string) error
	component func(c *Component, name, text string) error
	null      bool // JSON null is a value
}

// Null tells whether JSON's null is a value of the key.
func (k Key) Null() bool { return k.null }

func (k Key) matches(name string) bool {
	if prefix, ok := k.family(); ok {
		return strings.HasPrefix(name, prefix) && len(name) > len(prefix)
	}
	return name == k.Name
}

// family is the prefix of a family's keys, with its dot.
func (k Key) family() (string, bool) {
	prefix, ok := strings.CutSuffix(k.Name, "*")
	return prefix, ok
}

// Frameworks are the names that muster.framework may have besides auto.
func Frameworks() []string {
	return []string{
		"cntk", "horovod", "jax", "lightgbm", "lightlda", "mpi", "mxnet", "none", "pytorch", "tensor2tensor",
		"tensorflow", "xdl", "xflow", "xgboost",
	}
}
