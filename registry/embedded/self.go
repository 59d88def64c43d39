package embedded

import "net/http"

func (s *Server) statusLeader(*http.Request) (reply, error) { return reply{body: s.leader}, nil }

// agentSelf describes this server: Consul's API of the version below, by muster.
func (s *Server) agentSelf(*http.Request) (reply, error) {
	return reply{body: map[string]map[string]any{
		"Config": {
			"Datacenter": "dc1", "PrimaryDatacenter": "dc1", "NodeName": nodeName, "NodeID": "",
			"Revision": "muster", "Server": true, "Version": "1.14.4",
		},
		"Member": {"Name": nodeName, "Addr": "127.0.0.1", "Status": 1},
		"Meta":   {"muster-registry": "embedded"},
	}}, nil
}
