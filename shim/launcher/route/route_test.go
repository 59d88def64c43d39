package route

import (
	"net/netip"
	"slices"
	"testing"
)

func TestSourceOfLoopback(t *testing.T) {
	got, err := Source("127.0.0.1:8500")
	if err != nil || got != "127.0.0.1" {
		t.Errorf("Source = %q, %v, want 127.0.0.1", got, err)
	}
	if _, err := Source("no port"); err == nil {
		t.Error("Source of an address without a port: want an error")
	}
}

func TestDefaultIsForOthers(t *testing.T) {
	a := Default()
	if a == "" {
		return // no network at all
	}
	if addr, err := netip.ParseAddr(a); err != nil || addr.IsLoopback() || addr.IsUnspecified() {
		t.Errorf("Default = %q: not an address for others", a)
	}
}

func TestLookup(t *testing.T) {
	if got := Lookup(t.Context(), "10.0.0.7"); !slices.Equal(got, []string{"10.0.0.7"}) {
		t.Errorf("an address: got %q", got)
	}
	if got := Lookup(t.Context(), "localhost"); !slices.Contains(got, "127.0.0.1") && !slices.Contains(got, "::1") {
		t.Errorf("localhost: got %q", got)
	}
	if got := Lookup(t.Context(), "nobody.invalid"); got != nil { // RFC 6761: no such name
		t.Errorf("a name that nobody has: got %q", got)
	}
}
