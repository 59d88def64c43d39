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
