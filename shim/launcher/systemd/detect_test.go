package systemd

import (
	"strings"
	"testing"
)

func TestUnitInstance(t *testing.T) {
	tests := []struct {
		unit      string
		component string
		index     int
		ok        bool
	}{
		{"muster@worker-3.service", "worker", 3, true},
		{`muster@worker\x2d3.service`, "worker", 3, true},
		{"muster@ps-a-0.service", "ps-a", 0, true},
		{"muster@worker.service", "", -1, false},
		{"nginx@worker-3.service", "", -1, false},
		{"muster.service", "", -1, false},
		{`muster@a\x.service`, "", -1, false},
	}
	for _, tt := range tests {
		c, i, ok := unitInstance(tt.unit)
		if c != tt.component || i != tt.index || ok != tt.ok {
			t.Errorf("unitInstance(%q) = %q, %d, %t, want %q, %d, %t", tt.unit, c, i, ok, tt.component, tt.index, tt.ok)
		}
	}
}

func FuzzUnit(f *testing.F) {
	f.Add("0::/user.slice/user-1000.slice/user@1000.service/app.slice/app-term.slice/vte-spawn-1.scope\n")
	f.Add(`0::/muster@a\x2d1.service`)
	f.Fuzz(func(t *testing.T, cgroup string) {
		c, i, ok := unitInstance(unitOf(cgroup))
		if ok && (c == "" || i < 0) {
			t.Errorf("unit in %q: component %q, index %d", cgroup, c, i)
		}
		if strings.Contains(unitOf(cgroup), "/") {
			t.Errorf("unit in %q holds a slash", cgroup)
		}
	})
}
