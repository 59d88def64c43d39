package prepare

import (
	"strings"
	"testing"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/fault"
)

// A host without the room that an instance wants does not start it; without a want nothing is asked.
func TestRoom(t *testing.T) {
	c := &Container{Config: Config{WorkDir: t.TempDir()}}
	if err := c.room(1_000_000_000); !fault.Is(err, registry.ClassData) || !strings.Contains(err.Error(), "the instance wants 1000000000") {
		t.Errorf("no host has that: %v", err)
	}
	c.WorkDir += "/none"
	if err := c.room(0); err != nil {
		t.Error(err)
	}
	if err := c.room(1); err == nil {
		t.Error("a folder that is not there has room")
	}
}
