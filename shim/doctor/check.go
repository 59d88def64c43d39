package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/launcher"
	"github.com/muster-agent/muster/shim/policy"
	"github.com/muster-agent/muster/shim/status"
)

// Check is one thing that doctor has looked at.
type Check struct {
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Needed bool   `json:"needed"` // without it muster cannot work here
	Found  string `json:"found"`
	Remedy string `json:"remedy"` // empty if nothing is wrong
}

// good and bad are results of a check; bad has the remedy.
func good(name, format string, args ...any) Check {
	return Check{Name: name, OK: true, Found: fmt.Sprintf(format, args...)}
}

func bad(name, remedy, format string, args ...any) Check {
	return Check{Name: name, Found: strings.TrimSpace(fmt.Sprintf(format, args...)), Remedy: remedy}
}

// needed marks a check whose failure keeps muster from working.
func (c Check) needed() Check {
	c.Needed = true
	return c
}

// registryPatience is the limit for an answer of the registry.
const registryPatience = 6 * time.Second

// Options say what to check beside the host itself.
type Options struct {
	State       status.Dir
	Ports       string // range to take ports from
	Policy      policy.Policy
	PolicyErr   error  // why the policy does not hold
	WorkDir     string // "": the launcher's, else the user's
	AppID       string // "": the launcher's, else unknown
	Registry    registry.Address
	RegistryErr error // why the address cannot be read
	Named       bool  // the registry was named: it must answer
}

// Look tries what an agent needs and looks at what it can use.
func Look(ctx context.Context, found launcher.Found, host launcher.Host, o Options) []Check {
	return slices.Concat(
		[]Check{
			checkLauncher(found, host), checkGuard(ctx), checkState(o.State), checkPorts(o.Ports),
			checkConsul(ctx, o), checkACL(ctx, o), checkPolicy(o),
			checkNotifier(o),
		},
		checkConfinement(ctx, found, o),
		[]Check{
			checkWorkFolder(found, o), checkOpenFiles(), checkShell(), checkPython(ctx), checkHadoop(),
			checkGPU(ctx, "/"),
		},
	)
}
