package wording

import (
	"cmp"
	"strings"
	"time"
)

// Clock is a time as people read it, in this host's zone; nothing for none.
func Clock(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Local().Format("2006-01-02 15:04:05")
}

// Joined lists words.
func Joined[T ~string](words []T) string {
	all := make([]string, len(words))
	for i, w := range words {
		all[i] = string(w)
	}
	return strings.Join(all, ", ")
}

// OrNone joins names; "none" where there are none.
func OrNone(names []string) string { return cmp.Or(strings.Join(names, ", "), "none") }
