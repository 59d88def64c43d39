package launcher

import (
	"slices"
	"testing"

	"github.com/muster-agent/muster/registry"
)

// TestAnswerTo: what asks for nothing else must not be a failure that a launcher repeats for ever.
func TestAnswerTo(t *testing.T) {
	for class, want := range map[registry.Class]Answer{
		registry.ClassNone: Done, registry.ClassStopped: Done,
		registry.ClassApp: Never, registry.ClassOOM: Never, registry.ClassTimeout: Never, registry.ClassDefinition: Never,
		registry.ClassNotPermitted: Never, registry.ClassMuster: Never,
		registry.ClassHost: Elsewhere, registry.ClassGPU: Elsewhere, registry.ClassPreempted: Elsewhere,
		registry.ClassNetwork: Again, registry.ClassData: Again, registry.ClassImage: Again,
		registry.ClassLauncher: "", registry.ClassRegistry: "", registry.ClassFlex: "", registry.ClassMismatch: "",
	} {
		if got := AnswerTo(class); got != want {
			t.Errorf("AnswerTo(%q) = %q, want %q", class, got, want)
		}
	}
}

func TestCodesAreSorted(t *testing.T) {
	if codes := Codes(); !slices.IsSortedFunc(codes, func(a, b Code) int { return a.Code - b.Code }) {
		t.Errorf("codes are not sorted: %v", codes)
	}
}
