package ports

import "testing"

// FuzzParseRanges: what is read prints as what reads the same, and holds nothing but ports.
func FuzzParseRanges(f *testing.F) {
	for _, text := range []string{"", "1", "20000-29999", "48000, 49000, 50001-50010", "5-1", "-", "0-65536", "1--2", " 7 - 9 "} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := ParseRanges(text)
		if err != nil {
			return
		}
		for _, r := range got {
			if r.From < 1 || r.From > r.To || r.To > 65535 {
				t.Errorf("ParseRanges(%q) = %v", text, got)
			}
		}
		if again, err := ParseRanges(got.String()); err != nil || again.String() != got.String() {
			t.Errorf("ParseRanges(%q) = %s, printed and read again %s, %v", text, got, again, err)
		}
	})
}
