package python2

import _ "embed"

// Names is a piece of Python: BUILTINS, DICT_METHODS, own_names(tree).
//
//go:embed names.py
var Names string
