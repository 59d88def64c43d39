package policy

import "fmt"

// Root is a folder of the host that definitions may name, in which an agent that is root writes for them what it brings
// or keeps: outputs, checkpoints. It is shown to no container.
type Root struct {
	Path     string `json:"path"`
	ReadOnly bool   `json:"read_only"`
}

func (p Policy) checkRoots(s *source) {
	first := map[string]int{}
	for i, r := range p.Roots {
		field := fmt.Sprintf("roots[%d]", i)
		belowRoot(s, field+".path", r.Path)
		if at, twice := first[r.Path]; twice {
			s.bad(field, "got %s, which roots[%d] names as well; want one of them", r.Path, at)
			continue
		}
		first[r.Path] = i
	}
}
