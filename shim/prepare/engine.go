package prepare

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/gpu"
	"github.com/muster-agent/muster/shim/plan"
	"github.com/muster-agent/muster/shim/policy"
	"github.com/muster-agent/muster/shim/sandbox"
)

// ChooseEngine chooses the best engine that this host permits, or the one that --engine names.
func ChooseEngine(ctx context.Context, name string, app *appdef.App) (sandbox.Choice, error) {
	if err := CheckEngine(name); err != nil {
		return sandbox.Choice{}, err
	}
	ownRoot := slices.ContainsFunc(app.Components, func(c appdef.Component) bool { return c.Limits.Image != "" })
	choice, err := sandbox.Choose(ctx, name, ownRoot)
	if err != nil {
		return choice, exit.With(exit.Forbidden, fmt.Errorf("--engine %s: %w", name, err))
	}
	return choice, nil
}

// CheckEngine refuses an unknown --engine before anything is made.
func CheckEngine(name string) error {
	if name != "auto" && !slices.Contains(sandbox.EngineNames(), name) {
		return exit.Usagef("--engine %q: want auto, %s", name, strings.Join(sandbox.EngineNames(), ", "))
	}
	return nil
}

// Shell is the name of this host's shell.
func Shell() string {
	for _, path := range []string{"/bin/bash", "/usr/bin/bash"} {
		if _, err := os.Stat(path); err == nil {
			return "bash"
		}
	}
	return "sh"
}

// EngineChoice is the engine, the limits that it does not enforce, and the filter and the ids that the policy has, for
// the plan.
func EngineChoice(c sandbox.Choice, rules policy.Policy) plan.EngineChoice {
	choice := plan.EngineChoice{
		Name: c.Engine.Name(), Why: c.Why, Cannot: c.Engine.Cannot(), Filter: rules.Seccomp.String(),
	}
	if MakesIDs(rules) {
		choice.IDs = plan.IDsSubordinate
	}
	if gpu.FindHelper() == nil {
		choice.Cannot["gpu_memory_mb"] = "muster-gpu, which watches it, is not beside muster"
	}
	return choice
}
