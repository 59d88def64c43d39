package process

import (
	"log/slog"
	"testing"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/machine"
	"github.com/muster-agent/muster/shim/ports"
	"github.com/muster-agent/muster/shim/sandbox"
)

// timer is a fence that knows whether the guard's timer ran out.
type timer struct {
	fence
	fired bool
}

func (t timer) EndedProcess() bool { return t.fired }

// The guard's dead-man timer explains an end by its own kill, and no result that the process came to by itself.
func TestDeadManTimerExplains(t *testing.T) {
	for name, tt := range map[string]struct {
		exit   sandbox.Exit
		fired  bool
		cutOff bool
		class  registry.Class
	}{
		"killed by the guard":                {sandbox.Exit{Signal: 9}, true, true, registry.ClassRegistry},
		"it had ended well":                  {sandbox.Exit{Code: new(0)}, true, false, registry.ClassNone},
		"killed by somebody else":            {sandbox.Exit{Signal: 9}, false, false, registry.ClassNone},
		"its end was not seen, and it fired": {sandbox.Exit{}, true, true, registry.ClassRegistry},
	} {
		p := New(t.Context(), Config{Fence: timer{fired: tt.fired}, Loop: machine.NewAgent(), Ports: ports.NewInstance("a", nil, slog.New(slog.DiscardHandler))})
		if out := p.judge(tt.exit, 0); out.CutOff != tt.cutOff || out.Class != tt.class {
			t.Errorf("%s: cut off %v, class %q; want %v, %q", name, out.CutOff, out.Class, tt.cutOff, tt.class)
		}
	}
}
