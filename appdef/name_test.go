package appdef

import "testing"

// Names have letters that no app id has; some have no other.
func TestNameOf(t *testing.T) {
	for name, want := range map[string]string{"ads": "ads", "训练": "app", "训练-2": "2", "a b": "a-b", "": "app", "~_.": "app"} {
		if got := NameOf(name, ""); got != want || !ValidName(got) {
			t.Errorf("%q: got %q, want %q", name, got, want)
		}
	}
}
