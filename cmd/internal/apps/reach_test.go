package apps

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"syscall"
	"testing"

	"github.com/muster-agent/muster/registry"
)

// An agent that is gone is named with its host; what an agent says stands as it is.
func TestFailed(t *testing.T) {
	gone := &url.Error{Op: "Post", URL: "https://agent/v1/exec", Err: &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}}
	in := registry.Instance{Component: "worker", Index: 1}
	for _, tt := range []struct {
		host string
		err  error
		want string
	}{
		{
			"10.0.0.2", fmt.Errorf("%w; more", gone), "exec a1/worker-1: its agent on 10.0.0.2 does not answer (connection refused): " +
				"muster status a1 says how it stands",
		},
		{"", gone, "exec a1/worker-1: its agent on this host does not answer (connection refused): muster status a1 says how it stands"},
		{"10.0.0.2", errors.New("no"), "exec a1/worker-1: no"},
	} {
		if err := (Target{App: "a1", Instance: &in, host: tt.host}).Failed("exec", tt.err); err.Error() != tt.want {
			t.Errorf("got %v, want %s", err, tt.want)
		}
	}
}
