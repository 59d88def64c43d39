package process

import (
	"strings"
	"syscall"
	"testing"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/fault"
	"github.com/muster-agent/muster/shim/plan"
	"github.com/muster-agent/muster/shim/sandbox"
)

// TestNotRun: without an interpreter it is the definition's matter, and the words help; a machine that is full is not.
func TestNotRun(t *testing.T) {
	script := &plan.Script{File: "scripts/a.py", Python: "python3"}
	for name, c := range map[string]struct {
		err   error
		class registry.Class
		says  string
	}{
		"no interpreter": {&sandbox.StartError{Act: "exec", Err: syscall.ENOENT}, registry.ClassDefinition, "muster.python"},
		"no program":     {&sandbox.StartError{Act: "exec", Err: syscall.ENOEXEC}, registry.ClassDefinition, "INSTALL"},
		"too many":       {&sandbox.StartError{Act: "fork", Err: syscall.EAGAIN}, registry.ClassNone, "INSTALL"},
		"a full disk":    {syscall.ENOSPC, registry.ClassNone, "INSTALL"},
	} {
		err := notRun(script, c.err)
		if got := fault.ClassOf(err); got != c.class || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: got class %s: %v; want %s and %q", name, got, err, c.class, c.says)
		}
	}
}

// TestOfLife: nobody starts or ends an instance behind the machine's back, in whatever letters.
func TestOfLife(t *testing.T) {
	s := &plan.Script{File: "scripts/a.py", Commands: map[string]plan.ScriptCommand{"restart": {Shell: "true"}, "STOP": {Shell: "true"}}}
	for name, want := range map[string]bool{
		"INSTALL": true, "START": true, "start": true, "Stop": true, "STOP": true, "RESTART": true, "Restart": true,
		"restart": false, "STATUS": false, "GET_CONFIG": false, "REBALANCE": false,
	} {
		if got := ofLife(s, name); got != want {
			t.Errorf("%s: got %t", name, got)
		}
	}
}

// A program that is not there: the cause says what to do about it.
func TestRemedy(t *testing.T) {
	for name, c := range map[string]struct {
		err  *sandbox.StartError
		says string // empty: nothing
	}{
		"a name":           {&sandbox.StartError{Act: "exec", Path: "mpirun", Err: syscall.ENOENT, Hint: "looked for in PATH: install it"}, ""},
		"a path":           {&sandbox.StartError{Act: "exec", Path: "/opt/mpirun", Err: syscall.ENOENT}, "; the path is looked up where the process runs: on this host, or in the image of muster.image"},
		"its interpreter":  {&sandbox.StartError{Act: "exec", Path: "/opt/mpirun", Err: syscall.ENOENT, Hint: "the file is there"}, ""},
		"its folder":       {&sandbox.StartError{Act: "chdir", Path: "/opt", Err: syscall.ENOENT}, ""},
		"not for its user": {&sandbox.StartError{Act: "exec", Path: "mpirun", Err: syscall.EACCES}, ""},
	} {
		x := notStarted(c.err)
		if x.Message != c.err.Error()+c.says || x.Class != registry.ClassDefinition || !x.Final {
			t.Errorf("%s: got %s, %q, final %v", name, x.Class, x.Message, x.Final)
		}
	}
}
