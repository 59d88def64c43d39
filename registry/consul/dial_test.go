package consul

import (
	"context"
	"encoding/pem"
	"errors"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/registry/embedded"
)

// at is an address that parses.
func at(t *testing.T, text string) registry.Address {
	t.Helper()
	a, err := registry.ParseAddress(text)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// TestTLS: certificates come from CONSUL_CACERT; without it the server is not trusted.
func TestTLS(t *testing.T) {
	r := embedded.New(embedded.Options{})
	t.Cleanup(r.Close)
	web := httptest.NewTLSServer(r.Handler())
	t.Cleanup(web.Close)
	ping := func() error {
		c, err := Open(Config{Address: at(t, "consul+tls://"+web.Listener.Addr().String())})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		return c.Ping(t.Context())
	}
	if err := ping(); !errors.Is(err, registry.ErrUnreachable) {
		t.Errorf("a server that nobody vouches for: %v", err)
	}
	ca := filepath.Join(t.TempDir(), "ca.pem")
	cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: web.Certificate().Raw})
	if err := os.WriteFile(ca, cert, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("CONSUL_CACERT", ca)
	if err := ping(); err != nil {
		t.Errorf("with CONSUL_CACERT: %v", err)
	}
}

func TestTokenFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("from-file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("CONSUL_HTTP_TOKEN", "from-env")
	for _, tt := range []struct{ name, file, token, want string }{
		{"environment", "", "", "from-env"},
		{"file before environment", file, "", "from-file"},
		{"given before all", file, "given", "given"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv("CONSUL_HTTP_TOKEN_FILE", tt.file)
			got, err := newToken(tt.token)
			if err != nil || got.now() != tt.want {
				t.Errorf("got %q, %v, want %q", got.now(), err, tt.want)
			}
		})
	}
}

func TestPingUnreachable(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	c, err := Open(Config{Address: at(t, "consul://"+addr)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	for n := range int64(2) {
		if err := c.Ping(t.Context()); !errors.Is(err, registry.ErrUnreachable) || c.Failed() != n+1 {
			t.Errorf("got %v, %d requests that failed", err, c.Failed())
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.Ping(ended); !errors.Is(err, context.Canceled) || c.Failed() != 2 {
		t.Errorf("called off: got %v, %d requests that failed", err, c.Failed())
	}
}
