package consulserver

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/muster-agent/muster/tests/netns"
)

// StartCluster starts one server on each of the given hosts of a network, and returns once all of them follow one
// leader. A majority of them must run for anything to be written.
func StartCluster(t testing.TB, net *netns.Net, hosts ...int) []*Server {
	t.Helper()
	var all []*Server
	for _, host := range hosts {
		all = append(all, prepare(t, Options{Net: net, Host: host}, fmt.Sprintf("server-%d", host), len(hosts)))
	}
	for _, s := range all {
		s.args = append(s.args, "-retry-interval=1s")
		for _, other := range all {
			if other != s {
				s.args = append(s.args, "-retry-join="+other.place.address+":"+other.flag("serf-lan-port"))
			}
		}
	}
	for _, s := range all {
		s.launch()
	}
	for _, s := range all {
		s.awaitReady()
	}
	return all
}

// HTTP is a client on the server's own host, which reaches the server also while the host is cut off.
func (s *Server) HTTP() *http.Client { return s.place.client }

// Leads tells whether the server, as far as it knows, is the leader of its cluster.
func (s *Server) Leads(ctx context.Context) bool {
	var leader string
	return s.run != nil && s.get(ctx, "/v1/status/leader", &leader) == nil &&
		leader == strings.Join([]string{s.place.address, s.flag("server-port")}, ":")
}
