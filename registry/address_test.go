package registry_test

import (
	"encoding/json"
	"testing"

	"github.com/muster-agent/muster/registry"
)

func TestParseAddress(t *testing.T) {
	for _, tt := range []struct {
		in, text, socket, hostPort string
		tls                        bool
	}{
		{in: "consul://10.0.0.1:8500", hostPort: "10.0.0.1:8500"},
		{in: "consul://[::1]:8500/", text: "consul://[::1]:8500", hostPort: "[::1]:8500"},
		{in: "consul://[fe80::1%eth0]:8500", hostPort: "[fe80::1%eth0]:8500"},
		{in: "consul+tls://c.example:8501", hostPort: "c.example:8501", tls: true},
		{in: "unix:/run/muster/registry.sock", socket: "/run/muster/registry.sock"},
		{in: "unix:///run/r.sock", text: "unix:/run/r.sock", socket: "/run/r.sock"},
	} {
		got, err := registry.ParseAddress(tt.in)
		socket, isSocket := got.Socket()
		hostPort, isHost := got.HostPort()
		if tt.text == "" {
			tt.text = tt.in
		}
		switch {
		case err != nil, got.String() != tt.text, got.TLS() != tt.tls, got.IsZero():
			t.Errorf("%s: got %s, %v", tt.in, got, err)
		case isSocket != (tt.socket != "") || isSocket && socket != tt.socket:
			t.Errorf("%s: got socket %q", tt.in, socket)
		case isHost != (tt.hostPort != "") || isHost && hostPort != tt.hostPort:
			t.Errorf("%s: got %q", tt.in, hostPort)
		}
	}
	for _, in := range []string{
		"", "unix:", "http://h:1", "consul://host", "10.0.0.1:8500", "consul://", "consul://http://h:1", "consul://http://h",
		"consul://h:1/v1", "consul://h:http", "consul://h:0", "consul://::1:8500", "consul://[::1]:0", "consul://a@h:1",
	} {
		if got, err := registry.ParseAddress(in); err == nil {
			t.Errorf("%q: got %+v, want an error", in, got)
		}
	}
}

func TestParseConsulAddress(t *testing.T) {
	for _, tt := range []struct {
		in   string
		tls  bool
		want string
	}{
		{"10.0.0.1:8500", false, "consul://10.0.0.1:8500"},
		{"10.0.0.1:8501", true, "consul+tls://10.0.0.1:8501"},
		{"http://c:8500", true, "consul://c:8500"},
		{"https://c:8501", false, "consul+tls://c:8501"},
		{"unix:///run/consul.sock", false, "unix:/run/consul.sock"},
	} {
		if got, err := registry.ParseConsulAddress(tt.in, tt.tls); err != nil || got.String() != tt.want {
			t.Errorf("%s: got %s, %v, want %s", tt.in, got, err, tt.want)
		}
	}
}

func TestAddressInJSON(t *testing.T) {
	type record struct {
		Registry registry.Address `json:"registry"`
		Other    registry.Address `json:"other,omitzero"`
	}
	for _, text := range []string{`{"registry":"consul://c:8500"}`, `{"registry":""}`, `{"registry":"unix:/r.sock","other":"consul+tls://c:1"}`} {
		var r record
		if err := json.Unmarshal([]byte(text), &r); err != nil {
			t.Fatal(err)
		}
		if got, err := json.Marshal(r); err != nil || string(got) != text {
			t.Errorf("got %s, %v, want %s", got, err, text)
		}
	}
	if err := json.Unmarshal([]byte(`{"registry":"c:8500"}`), &record{}); err == nil {
		t.Error("an address without a scheme: got no error")
	}
}
