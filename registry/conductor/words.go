package conductor

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/muster-agent/muster/registry"
)

const namedMissing = 10 // how many instances a sentence names

// describe names an instance that is waited for, and says where it stands.
func describe(a *absence) string { return fmt.Sprintf("%s (%s)", a.Instance, standing(a)) }

// standing says where an instance stands that is waited for.
func standing(a *absence) string {
	m := &a.rec
	if m.Inc == "" {
		return "never joined"
	}
	switch m.Phase {
	case registry.PhaseJoined:
		return "joined on " + place(m.Member) + ", still staging"
	case registry.PhaseReady:
		return fmt.Sprintf("on %s, still in generation %d", place(m.Member), m.Gen)
	case registry.PhaseEnded:
		return "ended, its agent is gone"
	case registry.PhaseFailed:
		return "failed on " + place(m.Member)
	case registry.PhaseLost:
		return "lost with " + place(m.Member)
	case registry.PhaseLeft:
		return "left, not replaced"
	}
	return string(m.Phase)
}

func place(m registry.Member) string {
	if m.Host != "" {
		return m.Host
	}
	if m.Addr != "" {
		return m.Addr
	}
	return "an unknown host"
}

// some joins the texts of the first of a list, and tells how many more there are.
func some[T any](all []T, most int, text func(T) string) string {
	var parts []string
	for _, one := range all[:min(len(all), most)] {
		parts = append(parts, text(one))
	}
	if more := len(all) - most; more > 0 {
		parts = append(parts, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(parts, ", ")
}

func plural(n int) string {
	if n == 1 {
		return ""
	}
	return "s"
}

// seconds prints a duration as users write it in the definition.
func seconds(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'g', -1, 64) + " s" }
