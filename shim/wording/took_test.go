package wording

import (
	"testing"
	"time"
)

func TestTook(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0s", 340 * time.Millisecond: "300ms", 5340 * time.Millisecond: "5.3s", 12*time.Minute + 30*time.Second: "12m30s",
		3*time.Hour + 5*time.Minute: "3h5m", 52 * time.Hour: "2d4h",
	} {
		if got := Took(d); got != want {
			t.Errorf("%s: got %s, want %s", d, got, want)
		}
	}
}

func TestParseAge(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"90m": 90 * time.Minute, "7d": 168 * time.Hour, "0d": 0, "-1h": -1, "": -1, "3 weeks": -1, "2000000d": -1,
	} {
		if got, ok := ParseAge(text); ok != (want >= 0) || ok && got != want {
			t.Errorf("%q: got %s, %t", text, got, ok)
		}
	}
}
