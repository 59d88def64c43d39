package remote

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/muster-agent/muster/cmd/internal/apps"
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/exit"
)

// client is one user of a page. It is safe for concurrent use.
type client struct {
	base  *url.URL
	token string
	http  *http.Client
}

// Open makes a client; it connects at the first call. The address is https://HOST or https://HOST:PORT. Without TLS the
// token would be anybody's on the way: http is for this machine alone, where a tunnel ends.
func Open(address, token string) (apps.Page, error) {
	c, err := open(address, token)
	if err != nil {
		return nil, err
	}
	return c, nil
}

func open(address, token string) (*client, error) {
	base, err := url.Parse(address)
	if err != nil || base.Host == "" || base.User != nil || strings.Trim(base.Path, "/") != "" || base.RawQuery != "" ||
		base.Scheme != "https" && !(base.Scheme == "http" && loopback(base.Hostname())) {
		return nil, exit.Usagef("page %q: want https://HOST or https://HOST:PORT, as muster ui --url has it", address)
	}
	t, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		t = &http.Transport{}
	}
	t = t.Clone()
	t.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	t.Protocols = new(http.Protocols)
	t.Protocols.SetHTTP1(true) // the streams of a program need it
	t.MaxIdleConnsPerHost = mostIdle
	c := &client{base: &url.URL{Scheme: base.Scheme, Host: base.Host}, token: token}
	c.http = &http.Client{Transport: shown{t, c}, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse // the token is for this page
	}}
	return c, nil
}

// mostIdle is how many connections are kept for the next requests.
const mostIdle = 16

func loopback(host string) bool { return host == "localhost" || net.ParseIP(host).IsLoopback() }

// shown is a transport that shows the token.
type shown struct {
	*http.Transport
	c *client
}

func (s shown) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+s.c.token)
	r.Header.Set("Content-Type", "application/json") // else a page's own forms could act
	return s.Transport.RoundTrip(r)
}

// Close ends idle connections.
func (c *client) Close() { c.http.CloseIdleConnections() }

// mostAnswer is how long an answer may be, in bytes: of 10,000 apps, or of 1,000 instances.
const mostAnswer = 64 << 20

// call asks the page, and reads its answer into a value.
func (c *client) call(ctx context.Context, patience time.Duration, method string, to *url.URL, body, into any) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var text bytes.Buffer
	if body != nil {
		if err := json.NewEncoder(&text).Encode(body); err != nil {
			return err
		}
	}
	r, err := http.NewRequestWithContext(ctx, method, to.String(), &text)
	if err != nil {
		return err
	}
	answer, err := c.http.Do(r)
	if err != nil {
		return c.unreached(err, patience)
	}
	defer answer.Body.Close()
	all, err := io.ReadAll(io.LimitReader(answer.Body, mostAnswer+1))
	switch {
	case err != nil:
		return c.unreached(err, patience)
	case len(all) > mostAnswer:
		return c.failed(exit.Registry, nil, "its answer has more than %d bytes", mostAnswer)
	case answer.StatusCode == http.StatusOK:
		if err := json.Unmarshal(all, into); err != nil {
			return c.failed(exit.Registry, nil, "its answer cannot be read: %v; is that muster ui?", err)
		}
		return nil
	}
	return c.refused(answer, all)
}

// failure is what a page says, or what is said of it.
type failure struct {
	text string
	is   error // that callers distinguish; nil: none
}

func (f failure) Error() string { return f.text }

func (f failure) Unwrap() error { return f.is }

func (c *client) failed(code int, is error, format string, args ...any) error {
	return exit.With(code, failure{fmt.Sprintf("page %s: "+format, append([]any{c.base}, args...)...), is})
}

// unreached is the error of a page that has not answered.
func (c *client) unreached(err error, patience time.Duration) error {
	if bad, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return c.failed(exit.Forbidden, nil, "its certificate is not trusted here, so nothing was sent to it: %v; "+
			"SSL_CERT_FILE names a file with the certificate of its authority", bad.Err)
	}
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		err = wrapped.Err // the page is named already
	}
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("no answer in %s", patience)
	}
	return c.failed(exit.Registry, registry.ErrUnreachable, "it cannot be reached: %v; look at --ui, MUSTER_UI and "+
		"the network of this host", err)
}

// refused is the error of an answer that is none.
func (c *client) refused(answer *http.Response, text []byte) error {
	var said Refusal
	own := json.Unmarshal(text, &said) == nil && said.Error != ""
	switch code := answer.StatusCode; {
	case code == http.StatusUnauthorized:
		return c.failed(exit.Forbidden, registry.ErrForbidden, "it does not know the token of this user, who may "+
			"neither look nor act; its operator makes one with muster ui token, and adds its line to the page's "+
			"--tokens")
	case code >= 300 && code < 400:
		return c.failed(exit.Usage, nil, "it leads to %s, to which the token was not sent; give --ui that address, "+
			"if it is the page's", answer.Header.Get("Location"))
	case own:
		return exit.With(cmp.Or(said.Code, 1), failure{said.Error, map[int]error{
			http.StatusNotFound: registry.ErrNoApp, http.StatusForbidden: registry.ErrForbidden,
			http.StatusServiceUnavailable: registry.ErrUnreachable,
		}[code]})
	case code == http.StatusNotFound:
		return c.failed(exit.Registry, nil, "it does not answer %s: it is no muster ui, or one of an earlier build",
			answer.Request.URL.Path)
	}
	const most = 200
	line, _, _ := strings.Cut(strings.TrimSpace(string(text)), "\n")
	return c.failed(exit.Registry, nil, "it answers %s: %q", answer.Status, line[:min(len(line), most)])
}

// path is below the page's API, each part escaped.
func (c *client) path(parts ...string) *url.URL {
	return c.base.JoinPath("api/v1").JoinPath(escaped(parts)...)
}

func escaped(parts []string) []string {
	var all []string
	for _, p := range parts {
		all = append(all, url.PathEscape(p))
	}
	return all
}

// me asks who this user is to the page.
func (c *client) me(ctx context.Context) (Me, error) {
	var m Me
	err := c.call(ctx, apps.Patience, http.MethodGet, c.path("registry"), nil, &m)
	return m, err
}
