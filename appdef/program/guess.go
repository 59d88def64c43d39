package program

import (
	"maps"
	"regexp"
	"slices"
	"strings"
)

// imported is a module that a line of Python imports: the part before the first dot.
var imported = regexp.MustCompile(`(?m)^[ \t]*(?:from[ \t]+(\w+)[\w.]*[ \t]+import\b|import[ \t]+([\w., \t]+))`)

// Imports are the modules that a Python program imports, by the part of their names before the first dot, sorted.
// Relative imports are none.
func Imports(text string) []string {
	found := map[string]bool{}
	for _, m := range imported.FindAllStringSubmatch(text, -1) {
		if m[1] != "" {
			found[m[1]] = true
			continue
		}
		for one := range strings.SplitSeq(m[2], ",") {
			fields := strings.Fields(one)
			if len(fields) > 0 {
				name, _, _ := strings.Cut(fields[0], ".")
				found[name] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// frameworkOf is the framework of a module. What stands for several, as keras does, names none.
var frameworkOf = map[string]string{
	"torch": "pytorch", "torchvision": "pytorch", "pytorch_lightning": "pytorch", "lightning": "pytorch",
	"tensorflow": "tensorflow", "tensorflow_datasets": "tensorflow",
	"jax": "jax", "flax": "jax", "optax": "jax", "haiku": "jax",
	"xgboost": "xgboost", "lightgbm": "lightgbm", "mxnet": "mxnet",
	"horovod": "horovod-gloo", "mpi4py": "mpi",
}

// Guess is the framework of a program by what it imports: of several modules the one that starts the processes' own
// network counts, as Horovod in a program of PyTorch's. by is the module; "": nothing says it. Of two that are equal
// none is guessed, and both are in by.
func Guess(imports []string) (framework, by string) {
	for _, first := range []string{"horovod", "mpi4py"} {
		if slices.Contains(imports, first) {
			return frameworkOf[first], first
		}
	}
	found := map[string]string{}
	for _, name := range imports {
		if f := frameworkOf[name]; f != "" && (found[f] == "" || len(name) < len(found[f])) {
			found[f] = name
		}
	}
	switch all := slices.Sorted(maps.Keys(found)); len(all) {
	case 0:
		return "", ""
	case 1:
		return all[0], found[all[0]]
	default:
		names := make([]string, len(all))
		for i, f := range all {
			names[i] = found[f]
		}
		return "", strings.Join(names, " and ")
	}
}
