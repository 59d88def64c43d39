package exit

import (
	"slices"
	"strconv"
	"strings"

	"github.com/muster-agent/muster/registry"
)

// Map translates exit codes for a launcher that speaks otherwise: by code or by class of the verdict.
type Map map[string]int

// ParseMap reads CODE|CLASS=CODE,…, as --exit-code-map takes it.
func ParseMap(text string) (Map, error) {
	m := Map{}
	if text == "" {
		return m, nil
	}
	for pair := range strings.SplitSeq(text, ",") {
		from, to, ok := strings.Cut(pair, "=")
		n, err := strconv.Atoi(to)
		if !ok || err != nil || n < 0 || n > 255 {
			return nil, Usagef("--exit-code-map %q: want CODE=CODE or CLASS=CODE with codes 0…255", pair)
		}
		from = strings.TrimSpace(from)
		var named []string
		for _, class := range Classes() {
			named = append(named, string(class))
		}
		if code, err := strconv.Atoi(from); (err != nil || code < 0 || code > 255) && !slices.Contains(named, from) {
			return nil, Usagef("--exit-code-map %q: got %q, want a code 0…255 or a class: %s", pair, from,
				strings.Join(named, ", "))
		}
		m[from] = n
	}
	return m, nil
}

// Classes are those that a verdict or an agent's end may have.
func Classes() []registry.Class {
	return []registry.Class{
		registry.ClassApp, registry.ClassOOM, registry.ClassGPU, registry.ClassHost, registry.ClassNetwork,
		registry.ClassData,
		registry.ClassImage, registry.ClassPreempted, registry.ClassStopped, registry.ClassTimeout,
		registry.ClassDefinition,
		registry.ClassNotPermitted, registry.ClassMuster, registry.ClassLauncher,
	}
}

// Apply translates the code of an end that has a class.
func (m Map) Apply(code int, class registry.Class) int {
	if to, ok := m[strconv.Itoa(code)]; ok {
		return to
	}
	if to, ok := m[string(class)]; ok && class != "" {
		return to
	}
	return code
}
