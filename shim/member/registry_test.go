package member

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"syscall"
	"testing"

	"github.com/muster-agent/muster/registry"
)

// What mends a registry that does not answer depends on why: a name that nobody knows is no matter of Consul's.
func TestRegistryRemedy(t *testing.T) {
	asked := func(err error) error {
		return fmt.Errorf("ask for the leader: %w: %w", registry.ErrUnreachable, &url.Error{Op: "Get", URL: "http://nosuch:8500", Err: err})
	}
	dial := func(err error) error { return asked(&net.OpError{Op: "dial", Net: "tcp", Err: err}) }
	const consul, name = "start Consul there, or give --registry the right address", "no host is called nosuch here: correct --registry"
	for cause, c := range map[string]struct {
		err  error
		want string
	}{
		"nobody knows the name":          {dial(&net.DNSError{Err: "no such host", Name: "nosuch", IsNotFound: true}), name},
		"the name server is silent":      {dial(&net.DNSError{Err: "i/o timeout", Name: "nosuch", IsTimeout: true}), consul},
		"nobody listens":                 {dial(syscall.ECONNREFUSED), consul},
		"it does not answer in time":     {asked(errors.New("deadline exceeded")), consul},
		"what is known of it is no more": {registry.ErrUnreachable, consul},
	} {
		if got := RegistryRemedyFor(c.err); !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: got %q, want %q", cause, got, c.want)
		}
	}
}
