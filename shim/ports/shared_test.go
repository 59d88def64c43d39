package ports

import "testing"

func TestAgreed(t *testing.T) {
	rs := Ranges{{20000, 20099}, {30000, 30000}}
	one := rs.Agreed("app", "ps", "global.ps.port")
	if again := rs.Agreed("app", "ps", "global.ps.port"); again != one || !rs.Contains(one) {
		t.Errorf("got %d, then %d", one, again)
	}
	seen := map[int]bool{}
	for _, app := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
		seen[rs.Agreed(app, "ps", "x")] = true
	}
	if len(seen) < 4 {
		t.Errorf("8 apps agree on %d numbers only", len(seen))
	}
	if rs.Agreed("ab", "c") == rs.Agreed("a", "bc") && rs.Agreed("ab", "d") == rs.Agreed("a", "bd") {
		t.Error("where a word ends does not count")
	}
	if got := (Ranges{}).Agreed("app"); got != 0 {
		t.Errorf("of no ports: got %d, want 0", got)
	}
}
