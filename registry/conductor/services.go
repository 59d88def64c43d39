package conductor

import "github.com/muster-agent/muster/registry"

// findServices lists the services that have no live key. They hold up nothing; the conductor only
// sees to it that a lost one's index becomes free for a replacement.
func (r *ruling) findServices() {
	if r.v.LiveAt.IsZero() {
		return
	}
	for i := range r.c.Facts.Components {
		f := &r.c.Facts.Components[i]
		if f.Waited {
			continue
		}
		for k := range r.c.Facts.count(r.d, i) {
			if in := (registry.Instance{Component: f.Name, Index: k}); !r.v.Live[in] {
				r.services = append(r.services, r.absence(in, f, -1))
			}
		}
	}
}

func (r *ruling) hasServices() bool {
	for i, f := range r.c.Facts.Components {
		if !f.Waited && r.c.Facts.count(r.d, i) > 0 {
			return true
		}
	}
	return false
}
