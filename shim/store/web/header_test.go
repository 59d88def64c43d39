package web

import (
	"fmt"
	"testing"
	"time"
)

// What is accepted contradicts itself nowhere, and says the same when it is printed.
func FuzzContentRange(f *testing.F) {
	for _, text := range []string{
		"bytes 0-9/10", "bytes 5-9/*", "bytes */10", "bytes 9-5/10", "Bytes 0-0/1", "bytes 0-9/9", "bytes +1-2/3",
		"bytes 0-99999999999999999999/1", "items 0-9/10", "bytes=0-9/10", "bytes  0-9/10", "bytes 0-9/10, 0-9/10", "",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := parseContentRange(text)
		if err != nil {
			if p.total != -1 {
				t.Fatalf("%q: got total %d with an error", text, p.total)
			}
			return
		}
		if p.first < 0 || p.last < p.first || p.total != -1 && p.total <= p.last {
			t.Fatalf("%q: got %+v", text, p)
		}
		total := "*"
		if p.total >= 0 {
			total = fmt.Sprint(p.total)
		}
		if again, err := parseContentRange(fmt.Sprintf("bytes %d-%d/%s", p.first, p.last, total)); err != nil || again != p {
			t.Fatalf("%q: again: got %+v, %v, want %+v", text, again, err, p)
		}
	})
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Duration{
		"": 0, "7": 7 * time.Second, "-7": 0, "+7": 0, "7.5": 0, "999999999999": 0, "100000": maxAfter,
		"Sat, 21 Nov 2026 12:00:30 GMT": 30 * time.Second, "Sat, 21 Nov 2026 11:00:30 GMT": 0, "soon": 0,
	} {
		if got := parseRetryAfter(text, now); got != want {
			t.Errorf("%q: got %s, want %s", text, got, want)
		}
	}
}
