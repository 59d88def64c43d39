package exit

import "strings"

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
