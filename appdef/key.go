package appdef

import "strings"

// Key is one of muster's own settings in a definition. The loader and the manual use the same table of keys.
type Key struct {
	Name    string // muster.restart.budget; a family ends in `.*`: muster.env.*
	Default string // as the manual prints it; empty: none
	Meaning string
	Global  bool     // for the whole app; else for a component, with global as its default
	Limit   bool     // belongs into resources; else into appConfig. Both files accept all keys.
	Values  []string // the only allowed values; none: see Meaning

	// Exactly one of the two is set. It stores a value, or returns what it wants instead.
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
		"cntk", "horovod", "horovod-gloo", "jax", "lightgbm", "lightlda", "mpi", "mxnet", "none", "pytorch",
		"tensor2tensor", "tensorflow", "tony", "xdl", "xflow", "xgboost",
	}
}
