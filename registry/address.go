package registry

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// AddressForms are the texts of an address, for help and errors.
const AddressForms = "consul://HOST:PORT, consul+tls://HOST:PORT or unix:PATH"

// Address is where a registry listens. Its text in flags, files and JSON is consul://HOST:PORT, consul+tls://HOST:PORT
// or unix:PATH. The zero Address names no registry; its text is empty.
type Address struct {
	scheme string
	at     string // HOST:PORT or PATH
}

const (
	schemeHTTP   = "consul://"
	schemeTLS    = "consul+tls://"
	schemeSocket = "unix:"
)

// ParseAddress reads the text of an address; an empty one is an error.
func ParseAddress(s string) (Address, error) {
	if path, ok := strings.CutPrefix(s, schemeSocket); ok {
		if path = strings.TrimPrefix(path, "//"); path == "" {
			return Address{}, fmt.Errorf("registry %q: want unix:PATH", s)
		}
		return SocketAddress(path), nil
	}
	for _, scheme := range []string{schemeHTTP, schemeTLS} {
		at, ok := strings.CutPrefix(s, scheme)
		if !ok {
			continue
		}
		at = strings.TrimSuffix(at, "/")
		if err := checkHostPort(at); err != nil {
			return Address{}, fmt.Errorf("registry %q: want HOST:PORT behind the scheme: %w", s, err)
		}
		return Address{scheme, at}, nil
	}
	return Address{}, fmt.Errorf("registry %q: want %s", s, AddressForms)
}

// ParseConsulAddress reads an address in the form of CONSUL_HTTP_ADDR: http://, https://, unix:// or HOST:PORT, for
// which tls decides.
func ParseConsulAddress(s string, tls bool) (Address, error) {
	for theirs, ours := range map[string]string{"http://": schemeHTTP, "https://": schemeTLS, "unix://": schemeSocket} {
		if rest, ok := strings.CutPrefix(s, theirs); ok {
			return ParseAddress(ours + rest)
		}
	}
	if tls {
		return ParseAddress(schemeTLS + s)
	}
	return ParseAddress(schemeHTTP + s)
}

// DefaultAddress is where a Consul agent of this host listens.
func DefaultAddress() Address { return Address{schemeHTTP, "127.0.0.1:8500"} }

// SocketAddress is the address of a registry that serves one host through a socket.
func SocketAddress(path string) Address { return Address{schemeSocket, path} }

func checkHostPort(s string) error {
	if _, err := netip.ParseAddrPort(s); err == nil && !strings.HasSuffix(s, ":0") {
		return nil
	}
	at := strings.LastIndexByte(s, ':')
	if at < 0 {
		return fmt.Errorf("%q names no port", s)
	}
	host, port := s[:at], s[at+1:]
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return fmt.Errorf("port %q: want a number of 1-65535", port)
	}
	if strings.ContainsAny(host, "/@: []") {
		return fmt.Errorf("host %q: want a name or an address, IPv6 in brackets", host)
	}
	return nil
}

// String is the address as flags and files have it.
func (a Address) String() string { return a.scheme + a.at }

// IsZero tells that no registry is named.
func (a Address) IsZero() bool { return a == Address{} }

// Socket is the path of the socket of a registry that serves one host; false: it serves a network.
func (a Address) Socket() (path string, ok bool) { return a.at, a.scheme == schemeSocket }

// HostPort is where a registry that serves a network listens; false: it listens at a socket.
func (a Address) HostPort() (at string, ok bool) { return a.at, a.scheme != schemeSocket && a.at != "" }

// TLS tells whether the registry uses TLS.
func (a Address) TLS() bool { return a.scheme == schemeTLS }

// MarshalText is the address as text, for files and JSON.
func (a Address) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// UnmarshalText reads the address from files and JSON.
func (a *Address) UnmarshalText(text []byte) (err error) {
	if len(text) == 0 {
		*a = Address{}
		return nil
	}
	*a, err = ParseAddress(string(text))
	return err
}
