package wording

import "testing"

func TestPrintable(t *testing.T) {
	for text, want := range map[string]string{
		"plain, grün, 日本\n\tnext":     "plain, grün, 日本\n\tnext",
		"\x1b]0;title\x07\x1b[2Jgone": `\u001b]0;title\u0007\u001b[2Jgone`,
		"over\rwritten\b\x7f":         `over\u000dwritten\u0008\u007f`,
		"\u009b2J \x9b2J":             `\u009b2J \u009b2J`,
		"\u202etxt.exe\u2066":         `\u202etxt.exe\u2066`,
		"half \xe6\x97":               "half \xe6\\u0097",
	} {
		if got := Printable(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
	if got, want := Line("a\n  b\tc\x1b"), `a b c\u001b`; got != want {
		t.Errorf("a line: got %q, want %q", got, want)
	}
}

func TestProgram(t *testing.T) {
	for text, want := range map[string]string{
		"plain":                         "plain",
		"\x1b[1;31mred\x1b[m \x1b[2Jx":  "\x1b[1;31mred\x1b[m \\u001b[2Jx\x1b[0m",
		"\x1b[8mhidden\x1b[0;08mhidden": `\u001b[8mhidden\u001b[0;08mhidden`,
		"\x1b]52;c;aGk=\x07 \x1b[1":     `\u001b]52;c;aGk=\u0007 \u001b[1`,
		"\x1b[38;5;8mgrey":              `\u001b[38;5;8mgrey`, // as good as concealed is not told apart
	} {
		if got := Program(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}
