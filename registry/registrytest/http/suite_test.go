package consulhttp_test

import (
	"testing"
	"testing/synctest"

	"github.com/muster-agent/muster/registry/embedded/embeddedtest"
	consulhttp "github.com/muster-agent/muster/registry/registrytest/http"
	"github.com/muster-agent/muster/tests/servers/consulserver"
)

func TestConsul(t *testing.T) {
	consulhttp.Run(t, func(t testing.TB) consulhttp.Server {
		return consulhttp.Server{URL: "http://" + consulserver.Start(t, consulserver.Options{}).HTTPAddr}
	})
}

// TestEmbedded runs each case with a registry of its own in virtual time.
func TestEmbedded(t *testing.T) {
	for _, c := range consulhttp.Cases() {
		t.Run(c.Name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c.Run(t, consulhttp.Server{URL: embeddedtest.URL, Client: embeddedtest.Start(t)})
			})
		})
	}
}
