package process

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/muster-agent/muster/shim/plan"
	"github.com/muster-agent/muster/shim/script"
	"github.com/muster-agent/muster/shim/status"
)

// mostTail is how much of a command's output an answer holds, in bytes.
const mostTail = 64 << 10

// Command runs a command of the package for a user of this host. The commands of the instance's life belong to the
// machine.
func (p *Process) Command(ctx context.Context, name string) (status.CommandResult, error) {
	s, guard := p.Plan.Script, p.guards.now()
	switch {
	case s == nil:
		return status.CommandResult{}, fmt.Errorf("no script runs %s: one command line does", p.Loop.State().Instance)
	case guard == nil:
		return status.CommandResult{}, fmt.Errorf("the container does not exist yet: the instance is %s",
			p.Loop.State().Phase)
	case ofLife(s, name):
		return status.CommandResult{}, fmt.Errorf("%s belongs to the instance's life; muster stop ends it; muster "+
			"signal ends its process, and muster.restart says whether it starts again", name)
	case name == plan.CommandGetConfig && s.Commands[name] == plan.ScriptCommand{}:
		return p.configuration()
	case !s.Has(name):
		return status.CommandResult{}, fmt.Errorf("no command %s; the package has %v", name, script.Names(s))
	}
	end, err := p.order(ctx, name, plan.Seconds(s.Timeout))
	if err != nil {
		return status.CommandResult{}, err
	}
	p.Log.Info("command ended", "command", name, "ok", end.OK(), "stdout", end.files.Stdout)
	out := status.CommandResult{
		Command: name, Code: end.Code, Stdout: p.logs.Tail(end.files.Stdout, 0, mostTail),
		Stderr: p.logs.Tail(end.files.Stderr, 0, mostTail), Files: p.LogDir,
	}
	if !end.OK() {
		out.Cause = end.Why
	}
	if json.Valid(end.structured) {
		out.Structured = end.structured
	}
	return out, nil
}

// ofLife tells that only the machine gives a command. A script has its methods' names in lower case, and takes commands
// in either case; a command of metainfo with such a name is the package's own.
func ofLife(s *plan.Script, name string) bool {
	given := []string{plan.CommandInstall, plan.CommandStart, plan.CommandStop}
	if _, own := s.Commands[name]; own {
		return slices.Contains(given, name)
	}
	return slices.Contains(append(given, "RESTART"), strings.ToUpper(name)) // the library's RESTART is STOP and START
}

// configuration answers GET_CONFIG as Slider's agent does: with the input of START.
func (p *Process) configuration() (status.CommandResult, error) {
	s := p.filledScript()
	text, err := json.MarshalIndent(s.Configurations, "", "  ")
	if err != nil {
		return status.CommandResult{}, err
	}
	return status.CommandResult{Command: plan.CommandGetConfig, Code: new(int), Stdout: string(text) + "\n"}, nil
}
