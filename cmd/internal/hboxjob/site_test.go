package hboxjob

import (
	"os/user"
	"testing"
)

// TestProperties has Java's properties of a user who has no USER, or another one.
func TestProperties(t *testing.T) {
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	for _, set := range []string{"", "somebody"} {
		t.Setenv("USER", set)
		for name, want := range map[string]string{"user.name": me.Username, "user.home": me.HomeDir, "USER": set} {
			if got := getenv(name); got != want {
				t.Errorf("USER=%q: %s: got %q, want %q", set, name, got, want)
			}
		}
	}
}
