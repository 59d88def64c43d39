package policy

import (
	"fmt"
	"slices"
	"strings"
)

// Admit is what the operator does so that the policy says what lines say: `"ulimits": ["nice"]`. On a host without a
// policy it is a whole file.
func (p Policy) Admit(lines ...string) string {
	if p.Version == 0 {
		return fmt.Sprintf(`write {"version": 1, %s} to %s`, strings.Join(lines, ", "), p.File)
	}
	acts := make([]string, len(lines))
	for i, line := range lines {
		acts[i] = p.admit(line)
	}
	return strings.Join(acts, " and ")
}

func (p Policy) admit(line string) string {
	key, value, _ := strings.Cut(line, ": ")
	switch {
	case !slices.Contains(p.has, strings.Trim(key, `"`)):
		return fmt.Sprintf("add %s to %s", line, p.File)
	case strings.HasPrefix(value, "[") || strings.HasPrefix(value, "{"):
		return fmt.Sprintf("add %s to what %s has in %s", value, key, p.File)
	}
	return fmt.Sprintf("set %s in %s", line, p.File)
}
