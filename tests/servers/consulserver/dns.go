package consulserver

import (
	"context"
	"fmt"
	"net"
	"strings"

	"github.com/muster-agent/muster/tests/servers/ports"
)

// answerDNS has the server answer DNS as well: of two flags of a name Consul takes the last.
func (s *Server) answerDNS() {
	port := ports.Claim(s.t, 1)[0]
	s.args = append(s.args, fmt.Sprintf("-dns-port=%d", port))
	s.DNSAddr = fmt.Sprintf("%s:%d", s.place.address, port)
}

// Resolver asks this server's DNS, and nobody else. Names need a dot at their end, else the search list of this host is
// tried too.
func (s *Server) Resolver() *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, s.DNSAddr)
	}}
}

// flag is the value of one of the flags that the server was started with.
func (s *Server) flag(name string) string {
	for _, arg := range s.args {
		if value, ok := strings.CutPrefix(arg, "-"+name+"="); ok {
			return value
		}
	}
	return ""
}
