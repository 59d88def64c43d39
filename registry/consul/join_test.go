package consul

import (
	"testing"

	"github.com/muster-agent/muster/registry"
)

// TestDoubts: the holder's agent is asked where what it says can change something, and only there: it may take its time.
func TestDoubts(t *testing.T) {
	holder := &registry.Member{Inc: "old"}
	live, over := registry.Look{Member: holder, LiveSession: "s1"}, registry.Look{Member: holder}
	claim := func(p registry.Proof) registry.Decision { return registry.Claim{Proof: p} }
	for _, tt := range []struct {
		name     string
		d        registry.Decision
		look     registry.Look
		launcher bool
		want     bool
	}{
		{"from a shell, behind a holder", registry.Standby{}, live, false, true},
		{"from a shell, behind a result", registry.Wait{}, live, false, true},
		{"under a launcher, behind a holder", registry.Standby{}, live, true, false},
		{"behind one whose session is over", registry.Standby{}, over, false, false},
		{"the launcher's word", claim(registry.ProofSlot), live, true, true},
		{"the launcher's word on one whose session is over", claim(registry.ProofSlot), over, true, true},
		{"the operator's word on one whose session is over", claim(registry.ProofSaid), over, false, true},
		{"another boot", claim(registry.ProofBoot), over, true, true},
		{"its process is gone", claim(registry.ProofProcess), live, true, false},
		{"given back", claim(registry.ProofFree), over, true, false},
		{"its own record", claim(registry.ProofRecord), over, true, false},
		{"nobody was there", claim(registry.ProofFree), registry.Look{}, true, false},
		{"a refusal", registry.Refuse{}, live, false, false},
	} {
		if got := doubts(tt.d, tt.look, tt.launcher); got != tt.want {
			t.Errorf("%s: asked %v, want %v", tt.name, got, tt.want)
		}
	}
}
