package wording

import "testing"

func TestWrap(t *testing.T) {
	for _, c := range []struct {
		line          string
		width, indent int
		want          string
	}{
		{"short", 80, 2, "short"},
		{"  cause  one two three four five six", 30, 9, "  cause  one two three four\n         five six"},
		{"/a/path/that/is/longer/than/a/line and more", 30, 2, "/a/path/that/is/longer/than/a/line\n  and more"},
		{"grün grün grün grün grün grün", 29, 0, "grün grün grün grün grün grün"},
		{"an indent that leaves no room for anything", 30, 25, "an indent that leaves no room\n    for anything"},
	} {
		if got := Wrap(c.line, c.width, c.indent); got != c.want {
			t.Errorf("%q in %d: got %q, want %q", c.line, c.width, got, c.want)
		}
	}
}
