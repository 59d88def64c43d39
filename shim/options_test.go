package shim

import (
	"io"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/ports"
	"github.com/muster-agent/muster/shim/status"
)

func TestZeroOptionsAreTheDefaults(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", "/run/user/1")
	o, err := Options{}.orDefaults()
	if err != nil {
		t.Fatal(err)
	}
	if o.Engine != "auto" || o.Folders.State == "" || o.Output.To != io.Discard {
		t.Errorf("engine %q, state %q, output to %v", o.Engine, o.Folders.State, o.Output.To)
	}
	if diff := cmp.Diff(ports.Ranges{ports.Default}, o.Ports); diff != "" {
		t.Errorf("ports (-want +got):\n%s", diff)
	}
	want := registry.DefaultTimes()
	want.Barrier = 0 // the definition's
	if diff := cmp.Diff(want, o.Registry.Times); diff != "" {
		t.Errorf("times (-want +got):\n%s", diff)
	}
	given := Options{
		Engine: "process", Ports: ports.Ranges{}, Folders: Folders{State: status.Dir("/s")},
		Registry: Registry{Times: registry.Times{TTL: 20 * time.Second, Lost: 2 * time.Minute, Barrier: time.Minute}},
	}
	o, err = given.orDefaults()
	if err != nil || o.Engine != "process" || o.Folders.State != "/s" || o.Ports == nil || len(o.Ports) != 0 ||
		o.Registry.Times.TTL != 20*time.Second || o.Registry.Times.Barrier != time.Minute {
		t.Errorf("got %+v, %v", o, err)
	}
}

func TestTimesOfOptionsMustFit(t *testing.T) {
	line, _ := newLifeline()
	code, err := Run(t.Context(), Options{
		App: greet(t), Lifeline: line, Registry: Registry{Times: registry.Times{TTL: time.Second}},
	})
	if code != exit.Usage || err == nil || line.closed.Load() != 1 {
		t.Errorf("got %d, %v, lifeline closed %d times", code, err, line.closed.Load())
	}
}
