package hostlock

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
)

func TestOneHolder(t *testing.T) {
	long := strings.Repeat("x", 200)
	for _, name := range []string{"test/", "test/" + long} {
		name += fmt.Sprint(os.Getpid())
		first, err := Take(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Take(name); !errors.Is(err, ErrHeld) {
			t.Fatalf("second: got %v, want %v", err, ErrHeld)
		}
		other, err := Take(name + "y")
		if err != nil {
			t.Fatalf("another name: %v", err)
		}
		for range 2 {
			if err := errors.Join(first.Release(), other.Release()); err != nil {
				t.Fatal(err)
			}
		}
		again, err := Take(name)
		if err != nil {
			t.Fatalf("after the release: %v", err)
		}
		if err := again.Release(); err != nil {
			t.Fatal(err)
		}
	}
}
