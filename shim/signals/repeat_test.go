package signals

import (
	"os"
	"syscall"
	"testing"
	"time"
)

func TestEcho(t *testing.T) {
	for _, tt := range []struct {
		name  string
		first os.Signal
		then  os.Signal
		after time.Duration
		want  bool
	}{
		{"timeout signals its child and its group", syscall.SIGTERM, syscall.SIGTERM, 40 * time.Microsecond, true},
		{"a person, twice", os.Interrupt, os.Interrupt, 150 * time.Millisecond, false},
		{"muster run has every process killed", syscall.SIGTERM, syscall.SIGINT, 40 * time.Microsecond, false},
	} {
		begin := time.Unix(1000, 0)
		var e Repeat
		if e.Again(tt.first, begin) {
			t.Errorf("%s: the first is an echo", tt.name)
		}
		if got := e.Again(tt.then, begin.Add(tt.after)); got != tt.want {
			t.Errorf("%s: got %t, want %t", tt.name, got, tt.want)
		}
	}
}
