package machine

import (
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/exit"
)

// ExitCode is what the agent in this final state ends with.
func (s State) ExitCode() int {
	switch {
	case s.Code >= 0 && (s.Directive.Act != registry.ActStop || s.Phase == Superseded):
		return s.Code
	case s.Directive.Verdict != nil:
		return exit.Of(*s.Directive.Verdict, s.Instance.String())
	case s.Code >= 0:
		return s.Code
	}
	return exit.Internal
}
