package wording

import (
	"cmp"
	"fmt"
	"math"
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

// ClockUTC is a time as people of any zone read it, with the zone.
func ClockUTC(t time.Time) string { return t.UTC().Format(time.DateTime) + " UTC" }

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

// Took is a length of time in its two largest units: 5.3s, 12m30s, 3h5m, 2d4h.
func Took(d time.Duration) string {
	switch {
	case d < time.Minute:
		return d.Round(100 * time.Millisecond).String()
	case d < time.Hour:
		return d.Round(time.Second).String()
	case d < 24*time.Hour:
		d = d.Round(time.Minute)
		return fmt.Sprintf("%dh%dm", d/time.Hour, d%time.Hour/time.Minute)
	}
	d = d.Round(time.Hour)
	return fmt.Sprintf("%dd%dh", d/(24*time.Hour), d%(24*time.Hour)/time.Hour)
}

// ParseAge reads a time that has passed, such as 90m, 36h or 7d.
func ParseAge(text string) (age time.Duration, ok bool) {
	unit := time.Duration(1)
	number := text
	if days, found := strings.CutSuffix(text, "d"); found {
		number, unit = days+"h", 24
	}
	d, err := time.ParseDuration(number)
	if err != nil || d < 0 || d > math.MaxInt64/unit {
		return 0, false
	}
	return d * unit, true
}
