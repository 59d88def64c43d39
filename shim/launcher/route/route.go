package route

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"time"
)

// Source is the address that the kernel would use to reach address (host:port). Connecting a datagram socket only
// looks up the route: nothing is sent.
func Source(address string) (string, error) {
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

// Default is the source address of the default route, IPv4 before IPv6; empty without one. The addresses asked for are
// those of RFC 5737 and RFC 3849, which nobody has.
func Default() string {
	for _, nobody := range []string{"192.0.2.1:9", "[2001:db8::1]:9"} {
		a, err := Source(nobody)
		if err != nil {
			continue
		}
		if addr, err := netip.ParseAddr(a); err == nil && !addr.IsLoopback() && !addr.IsUnspecified() {
			return a
		}
	}
	return ""
}

// patience is how long a name is looked up.
const patience = 3 * time.Second

// Lookup are the addresses of a host's name, as this host knows them; none: it does not know the name, or not in three
// seconds. An address is its own.
func Lookup(ctx context.Context, host string) []string {
	if _, err := netip.ParseAddr(host); err == nil {
		return []string{host}
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	found, err := net.DefaultResolver.LookupHost(ctx, host)
	if err != nil {
		return nil
	}
	return found
}
