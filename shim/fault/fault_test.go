package fault

import (
	"errors"
	"fmt"
	"testing"

	"github.com/muster-agent/muster/registry"
)

func TestClassOf(t *testing.T) {
	cause := errors.New("no such file")
	for _, tt := range []struct {
		name string
		err  error
		want registry.Class
	}{
		{"nil", nil, ""},
		{"no class", cause, ""},
		{"wrapped", fmt.Errorf("stage: %w", Data(cause)), registry.ClassData},
		{"definition inside data", Data(fmt.Errorf("inputs: %w", Definition(cause))), registry.ClassDefinition},
		{"joined", errors.Join(cause, GPU(cause), NotPermitted(cause)), registry.ClassNotPermitted},
		{"held folder inside data", Data(Held(cause)), registry.ClassHost},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := ClassOf(tt.err); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
			if tt.want != "" && !errors.Is(tt.err, cause) {
				t.Error("the cause is lost")
			}
		})
	}
}
