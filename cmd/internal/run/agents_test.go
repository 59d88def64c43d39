package run

import (
	"os/exec"
	"testing"
)

// An agent whose process is gone counts until the loop has taken its end, or a directive that comes first would end the
// run before the agent is launched again.
func TestLivingUntilTaken(t *testing.T) {
	c := &child{cmd: &exec.Cmd{}}
	r := &runner{agents: []*child{c, {}}}
	if n := r.living(); n != 1 {
		t.Fatalf("%d agents live, want the launched one", n)
	}
	c.over = true
	if n := r.living(); n != 1 {
		t.Errorf("%d agents live before the loop has taken the end, want 1", n)
	}
	c.take()
	if n := r.living(); n != 0 {
		t.Errorf("%d agents live after it, want 0", n)
	}
}
