package wording

import (
	"cmp"
	"fmt"
	"slices"
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

// OrNone joins names; "none" where there are none.
func OrNone(names []string) string { return cmp.Or(strings.Join(names, ", "), "none") }

// Short bounds a cause for logs and the registry. It cuts the middle of a long one: an error begins with what was done
// and ends with why it failed and what to do.
func Short(text string) string {
	const first, last = 180, 320
	if len(text) > first+last {
		return strings.ToValidUTF8(text[:first], "") + "…" + strings.ToValidUTF8(text[len(text)-last:], "")
	}
	return text
}

// First is a list of names, of a long one the first of them and how many more there are.
func First(names []string, most int) string {
	if more := len(names) - most; more > 0 {
		names = append(slices.Clone(names[:most]), fmt.Sprintf("and %d more", more))
	}
	return strings.Join(names, ", ")
}
