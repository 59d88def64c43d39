package consul

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/muster-agent/muster/registry"
)

// A registry that hides sessions from the token does not say that nobody lives.
func TestAlive(t *testing.T) {
	const one = `[{"ID": "x", "Name": "muster d1 worker-0"}, {"ID": "y", "Name": "of others"}]`
	for name, tt := range map[string]struct {
		text, hidden string
		apps         int
		err          error
	}{
		"all":             {one, "", 1, nil},
		"none":            {"[]", "false", 0, nil},
		"some are hidden": {one, "true", 0, registry.ErrForbidden},
		"all are hidden":  {"[]", "true", 0, registry.ErrForbidden},
	} {
		web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Consul-Index", "1")
			w.Header().Set("X-Consul-LastContact", "0") // else the client reads none of the heads behind it
			if tt.hidden != "" {
				w.Header().Set("X-Consul-Results-Filtered-By-ACLs", tt.hidden)
			}
			_, _ = w.Write([]byte(tt.text))
		}))
		c, err := Open(Config{Address: at(t, "consul://"+web.Listener.Addr().String())})
		if err != nil {
			t.Fatal(err)
		}
		apps, err := c.Alive(t.Context())
		if len(apps) != tt.apps || !errors.Is(err, tt.err) {
			t.Errorf("%s: %v, %v", name, apps, err)
		}
		c.Close()
		web.Close()
	}
}
