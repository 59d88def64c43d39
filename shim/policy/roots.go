package policy

import "fmt"

// Root is a folder of the host that definitions may name, in which an agent that is root writes for them what it brings
// or keeps: outputs, checkpoints. It is shown to no container.
type Root struct {
	Path     string `json:"path"`
	ReadOnly bool   `json:"read_only"`
}

func checkRoots(roots []Root) error {
	for i, r := range roots {
		if !belowRoot(r.Path) {
			return fmt.Errorf("roots[%d]: got %q, want an absolute path below /, without dots for names", i, r.Path)
		}
	}
	return nil
}
