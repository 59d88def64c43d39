package launcher

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// HostChoices are the places where the host's address may come from, in the order of preference.
type HostChoices struct {
	Flag         string // --host or MUSTER_AGENT_HOST
	Launcher     string // Found.Allocation.Host
	LauncherFrom string // the variable that it came from
	// LauncherIs are the addresses that this host knows Launcher by; none: it does not know that name.
	LauncherIs   []string
	Source       string // route.Source of the registry; skipped when it is a loopback address
	ConsulAgent  string // advertised address of the node-local Consul agent
	DefaultRoute string // route.Default
	// Loopback allows 127.0.0.1 as the last resort: `muster run` with the embedded registry.
	Loopback bool
}

// Host is the address under which the gang reaches this host.
type Host struct {
	Address string
	Origin  string
	// Passed says why the launcher's word was not taken; empty: it was, or there is none.
	Passed string
}

// errNoHost says that no address is known under which the gang could reach this host.
var errNoHost = errors.New("no address of this host is known: give --host")

// ChooseHost names the address under which the gang reaches this host, and where it came from. A loopback address is
// nobody's address to others: it is taken only when a person says so, or where Loopback allows it, and then before
// any other guess: such a gang lives on one machine and must not depend on its network. A launcher's name for its
// host is its own, and need not be one that can be looked up; it is then passed over, and Passed says so.
func ChooseHost(c HostChoices) (Host, error) {
	switch {
	case c.Flag != "":
		return Host{Address: c.Flag, Origin: "--host"}, nil
	case c.Loopback:
		return Host{Address: "127.0.0.1", Origin: "embedded registry"}, nil
	}
	passed := c.passed()
	if c.Launcher != "" && passed == "" {
		return Host{Address: c.Launcher, Origin: c.LauncherFrom}, nil
	}
	for _, one := range []Host{
		{c.Source, "route to the registry", passed},
		{c.ConsulAgent, "local Consul agent", passed},
		{c.DefaultRoute, "default route", passed},
	} {
		if routable(one.Address) {
			return one, nil
		}
	}
	return Host{Passed: passed}, errNoHost
}

// passed is why others could not use the launcher's word for this host.
func (c HostChoices) passed() string {
	if c.Launcher == "" {
		return ""
	}
	if len(c.LauncherIs) == 0 {
		return fmt.Sprintf("%s is %q, a name that cannot be looked up here", c.LauncherFrom, c.Launcher)
	}
	if slices.ContainsFunc(c.LauncherIs, routable) {
		return ""
	}
	return fmt.Sprintf("%s is %q, which is %s, this host alone",
		c.LauncherFrom, c.Launcher, strings.Join(c.LauncherIs, " and "))
}

// routable refuses what others cannot dial: empty, unspecified and loopback addresses.
func routable(host string) bool {
	if host == "" || host == "localhost" {
		return false
	}
	a, err := netip.ParseAddr(host)
	return err != nil || !(a.IsLoopback() || a.IsUnspecified())
}
