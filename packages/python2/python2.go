// Package python2 holds what tells Python 2 from Python 3, for the programs that read a package's scripts: muster
// package lint and modernize put it in front of their own. It owns and runs nothing.
package python2

import _ "embed"

// Names is a piece of Python: BUILTINS, DICT_METHODS, own_names(tree).
//
//go:embed names.py
var Names string
