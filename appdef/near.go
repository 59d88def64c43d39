package appdef

import "strings"

// Nearest finds the name that text probably means: the one with the smallest edit distance, letter case aside. The
// distance may be at most a third of the part of the name after the dotted prefix that both share. Of equal distances
// the first name wins; a text that is one of the names means itself.
func Nearest(text string, names []string) (string, bool) {
	best, bestAt := "", -1
	for _, name := range names {
		if name == text {
			return "", false
		}
		whole, head := name, text
		if cut, open, ok := cutFamily(text, name); ok {
			name, head = strings.TrimSuffix(name, "*"), cut
			whole = name + open
		}
		rest, other := unshared(strings.ToLower(name), strings.ToLower(head))
		limit := (min(len(rest), 40) + 1) / 3
		if diff := len(rest) - len(other); diff > limit || -diff > limit {
			continue
		}
		if d := distance(other, rest); d <= limit && (bestAt < 0 || d < bestAt) {
			best, bestAt = whole, d
		}
	}
	return best, bestAt >= 0
}

// cutFamily cuts off text the part that the name of a family, such as muster.output.*, leaves open: of
// muster.ouput.model that is model.
func cutFamily(text, name string) (head, open string, ok bool) {
	family, ok := strings.CutSuffix(name, "*")
	if !ok {
		return text, "", false
	}
	at := 0
	for range strings.Count(family, ".") {
		next := strings.IndexByte(text[at:], '.')
		if next < 0 {
			return text, "", false
		}
		at += next + 1
	}
	return text[:at], text[at:], at < len(text)
}

// unshared cuts the prefix that two names share, up to its last dot.
func unshared(a, b string) (string, string) {
	cut := 0
	for i := 0; i < min(len(a), len(b)) && a[i] == b[i]; i++ {
		if a[i] == '.' {
			cut = i + 1
		}
	}
	return a[cut:], b[cut:]
}

// didYouMean is the hint with the nearest name, or nothing.
func didYouMean(text string, names []string) string {
	if near, ok := Nearest(text, names); ok {
		return "did you mean " + near + "?"
	}
	return ""
}

// OneOf is what is wanted of a list; fallback if the list is empty.
func OneOf(names []string, fallback string) string {
	if len(names) == 0 {
		return fallback
	}
	return "one of " + strings.Join(names, ", ")
}

// DidYouMean is the hint of a Problem about an unknown name: the nearest known one, or nothing.
func DidYouMean(text string, names []string) string { return didYouMean(text, names) }

// distance counts the insertions, deletions, replacements and swaps of neighbours between a and b
// (optimal string alignment, over bytes).
func distance(a, b string) int {
	before, row := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		next := make([]int, len(b)+1)
		next[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			next[j] = min(row[j]+1, next[j-1]+1, row[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				next[j] = min(next[j], before[j-2]+1)
			}
		}
		before, row = row, next
	}
	return row[len(b)]
}
