package publisher

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"
)

// Bounds of one connection: an asker that stalls holds nothing.
const (
	headerTime = 10 * time.Second
	readTime   = 30 * time.Second
	writeTime  = 30 * time.Second
	idleTime   = time.Minute
	maxHeader  = 16 << 10 // bytes
	// lastAnswers bounds how long an agent that ends goes on answering.
	lastAnswers = time.Second
)

// Listen takes a free port on the address host, 127.0.0.1 when empty, and makes up a path that nobody can guess
// (128 bits). url is what scripts are given: `http://ADDRESS:PORT/<32 hex>`; Slider's paths go behind it, and Prefix
// takes Handler's prefix from it. The unspecified address is refused: a URL must name one.
func Listen(host string) (l net.Listener, address string, err error) {
	if host == "" {
		host = "127.0.0.1"
	}
	if addr, err := netip.ParseAddr(host); err == nil && addr.IsUnspecified() {
		return nil, "", fmt.Errorf("listen on %s: no address that a URL can name", host)
	}
	l, err = net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		return nil, "", fmt.Errorf("listen: %w", err)
	}
	secret := make([]byte, 16)
	_, _ = rand.Read(secret) // never fails (crypto/rand)
	return l, "http://" + l.Addr().String() + "/" + hex.EncodeToString(secret), nil
}

// Prefix is the path of a URL that Listen gave.
func Prefix(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "" // answers to nobody
	}
	return "/" + strings.Trim(u.Path, "/")
}

type connectionKey struct{}

// Serve answers until ctx is done; what was asked before is still answered.
func Serve(ctx context.Context, l net.Listener, h http.Handler) error {
	server := &http.Server{
		Handler: h, ReadHeaderTimeout: headerTime, ReadTimeout: readTime, WriteTimeout: writeTime,
		IdleTimeout: idleTime, MaxHeaderBytes: maxHeader,
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, connectionKey{}, c)
		},
	}
	gone := make(chan struct{})
	end := context.AfterFunc(ctx, func() {
		defer close(gone)
		patience, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastAnswers)
		defer cancel()
		if server.Shutdown(patience) != nil {
			_ = server.Close() // it ends
		}
	})
	err := server.Serve(l)
	if !end() { // ctx is done: Serve returns before the answers are out
		<-gone
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}
