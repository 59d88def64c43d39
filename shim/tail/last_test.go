package tail

import (
	"strings"
	"testing"
)

func TestLast(t *testing.T) {
	long := strings.Repeat("é", 40)
	for _, c := range []struct {
		name, text string
		lines      int
		most       int
		want       string
	}{
		{"nothing", "", 3, 100, ""},
		{"blank lines alone", "\n \n\t\n", 3, 100, ""},
		{"the last ones", "one\ntwo\nthree\nfour\n", 2, 100, "three\nfour"},
		{"an unfinished line, blank ones between", "one\n\ntwo", 3, 100, "one\ntwo"},
		{"progress is no reason", "ValueError: x\nreporter progress:0.5\n", 3, 100, "ValueError: x"},
		{"a bar that is written over", "10%\r50%\r100%\r\ndone\r\n", 3, 100, "100%\ndone"},
		{"indentation stays", "Traceback:\n  File \"x\"\n", 3, 100, "Traceback:\n  File \"x\""},
		{"nothing steers a terminal", "\x1b[2Jgone\n", 3, 100, `\u001b[2Jgone`},
		{"bytes", "aaaa\nbbbb\ncccc\n", 9, 10, "bbbb\ncccc"},
		{"a long last line", long, 3, 10, "ééé…"},
		{"a long line before the last", long + "\nend\n", 3, 10, "end"},
	} {
		got := Last(c.text, c.lines, c.most)
		if got != c.want || len(got) > c.most {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}
