package consul

import (
	"testing"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/registry/conductor"
)

// TestDoubts: the holder's agent is asked where what it says can change something, and only there: it may take its time.
func TestDoubts(t *testing.T) {
	holder := &registry.Member{Inc: "old"}
	live, over := conductor.Snapshot{Member: holder, LiveSession: "s1"}, conductor.Snapshot{Member: holder}
	claim := func(p conductor.Proof) conductor.Admission { return conductor.Claim{Proof: p} }
	for _, tt := range []struct {
		name     string
		d        conductor.Admission
		look     conductor.Snapshot
		launcher bool
		want     bool
	}{
		{"from a shell, behind a holder", conductor.Standby{}, live, false, true},
		{"from a shell, behind a result", conductor.Wait{}, live, false, true},
		{"under a launcher, behind a holder", conductor.Standby{}, live, true, false},
		{"behind one whose session is over", conductor.Standby{}, over, false, false},
		{"the launcher's word", claim(conductor.ProofSlot), live, true, true},
		{"the launcher's word on one whose session is over", claim(conductor.ProofSlot), over, true, true},
		{"the operator's word on one whose session is over", claim(conductor.ProofOperator), over, false, true},
		{"another boot", claim(conductor.ProofBoot), over, true, true},
		{"its process is gone", claim(conductor.ProofProcess), live, true, false},
		{"given back", claim(conductor.ProofFree), over, true, false},
		{"its own record", claim(conductor.ProofRecord), over, true, false},
		{"nobody was there", claim(conductor.ProofFree), conductor.Snapshot{}, true, false},
		{"a refusal", conductor.Refuse{}, live, false, false},
	} {
		if got := answerMatters(tt.d, tt.look, tt.launcher); got != tt.want {
			t.Errorf("%s: asked %v, want %v", tt.name, got, tt.want)
		}
	}
}
