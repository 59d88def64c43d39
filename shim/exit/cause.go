package exit

import (
	"strings"

	"github.com/muster-agent/muster/registry"
)

// WithCause adds the cause to an outcome; a cause that begins with that very word stands alone.
func WithCause(outcome, cause string) string {
	if cause == "" {
		return outcome
	}
	if rest, ok := strings.CutPrefix(cause, outcome); ok && (rest == "" || rest[0] == ' ') {
		return cause
	}
	return outcome + ": " + cause
}

// VerdictText is a verdict in one line.
func VerdictText(v registry.Verdict) string {
	text := string(v.Outcome)
	if v.Class != "" && string(v.Class) != string(v.Outcome) {
		text += " (" + string(v.Class) + ")"
	}
	return WithCause(text, v.Cause)
}
