package launcher

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
)

// HostChoices are the places where the host's address may come from, in the order of preference.
type HostChoices struct {
	Flag         string // --host or MUSTER_AGENT_HOST
	Launcher     string // Found.Allocation.Host
	Source       string // SourceAddress of the registry; skipped when it is a loopback address
	ConsulAgent  string // advertised address of the node-local Consul agent
	DefaultRoute string // DefaultRouteAddress
	// Loopback allows 127.0.0.1 as the last resort: `muster run` with the embedded registry.
	Loopback bool
}

// ErrNoHost says that no address is known under which the gang could reach this host.
var ErrNoHost = errors.New("no address of this host is known: give --host")

// ChooseHost names the address under which the gang reaches this host, and where it came from.
// A loopback address is nobody's address to others: it is taken only when a person or the
// launcher says so, or where Loopback allows it, and then before any other guess: such a gang
// lives on one machine and must not depend on its network.
func ChooseHost(c HostChoices) (host, origin string, err error) {
	switch {
	case c.Flag != "":
		return c.Flag, "--host", nil
	case c.Loopback:
		return "127.0.0.1", "embedded registry", nil
	case c.Launcher != "":
		return c.Launcher, "launcher", nil
	case routable(c.Source):
		return c.Source, "route to the registry", nil
	case routable(c.ConsulAgent):
		return c.ConsulAgent, "local Consul agent", nil
	case routable(c.DefaultRoute):
		return c.DefaultRoute, "default route", nil
	}
	return "", "", ErrNoHost
}

// routable refuses what others cannot dial: empty, unspecified and loopback addresses.
func routable(host string) bool {
	if host == "" || host == "localhost" {
		return false
	}
	a, err := netip.ParseAddr(host)
	return err != nil || !(a.IsLoopback() || a.IsUnspecified())
}

// SourceAddress is the address that the kernel would use to reach address (host:port). Connecting
// a datagram socket only looks up the route: nothing is sent.
func SourceAddress(address string) (string, error) {
	c, err := net.Dial("udp", address)
	if err != nil {
		return "", fmt.Errorf("find the route to %s: %w", address, err)
	}
	defer c.Close()
	local, _, err := net.SplitHostPort(c.LocalAddr().String())
	if err != nil {
		return "", fmt.Errorf("find the route to %s: %w", address, err)
	}
	return local, nil
}

// DefaultRouteAddress is the source address of the default route, IPv4 before IPv6; empty without
// one. The addresses asked for are those of RFC 5737 and RFC 3849, which nobody has.
func DefaultRouteAddress() string {
	for _, nobody := range []string{"192.0.2.1:9", "[2001:db8::1]:9"} {
		if a, err := SourceAddress(nobody); err == nil && routable(a) {
			return a
		}
	}
	return ""
}
