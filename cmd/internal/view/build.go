package view

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/muster-agent/muster/registry/consul"
)

// build is a muster that agents of the run are: its version, the newest protocol that it speaks, and its instances.
type build struct {
	Version   string   `json:"version"`
	Protocol  int      `json:"protocol"`
	Instances []string `json:"instances"`
}

// buildsOf are the builds of the members that hold their indexes, oldest protocol first.
func buildsOf(st *consul.Status) []build {
	builds := []build{}
	for _, m := range membersNow(*st) {
		if !m.Live {
			continue
		}
		b := build{Version: cmp.Or(m.Build, "unknown"), Protocol: cmp.Or(m.Proto, 1)}
		same := func(o build) bool { return o.Version == b.Version && o.Protocol == b.Protocol }
		i := slices.IndexFunc(builds, same)
		if i < 0 {
			i, builds = len(builds), append(builds, b)
		}
		builds[i].Instances = append(builds[i].Instances, m.Instance.String())
	}
	slices.SortStableFunc(builds, func(a, b build) int {
		return cmp.Or(cmp.Compare(a.Protocol, b.Protocol), cmp.Compare(a.Version, b.Version))
	})
	return builds
}

// mostNamed is how many instances of a build a line names.
const mostNamed = 8

// String is the build as a line of status names it.
func (b build) String() string {
	names := strings.Join(b.Instances[:min(len(b.Instances), mostNamed)], ", ")
	if more := len(b.Instances) - mostNamed; more > 0 {
		names += fmt.Sprintf(" and %d others", more)
	}
	return fmt.Sprintf("%s (protocol %d): %s", b.Version, b.Protocol, names)
}
