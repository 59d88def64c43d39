package job

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/muster-agent/muster/shim/store"
)

// API speaks to a launcher's HTTP API.
type API struct {
	Base    string // http://HOST:PORT
	Client  *http.Client
	Query   url.Values  // of every request
	Headers http.Header // likewise
}

// apiPatience bounds one request. A ResourceManager that has just begun takes half a minute to its first answer about
// services.
const apiPatience = time.Minute

// StatusError is an answer other than the one that is wanted.
type StatusError struct {
	Code int
	Text string
}

func (e StatusError) Error() string { return e.Text }

func (e StatusError) Unwrap() error { return ErrRefused }

// Call sends a request and reads the answer into a value; nil: nobody wants it.
func (a API) Call(ctx context.Context, method, path string, body []byte, into any) error {
	ctx, cancel := context.WithTimeout(ctx, apiPatience)
	defer cancel()
	at := a.Base + path
	if len(a.Query) > 0 {
		sign := "?"
		if strings.Contains(path, "?") {
			sign = "&"
		}
		at += sign + a.Query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, method, at, bytes.NewReader(body))
	if err != nil {
		return err
	}
	maps.Copy(req.Header, a.Headers)
	req.Header.Set("Accept", "application/json")
	if len(body) > 0 {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := a.Client.Do(req)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	defer resp.Body.Close() // only read
	text, err := io.ReadAll(io.LimitReader(resp.Body, mostAnswer))
	if err != nil {
		return fmt.Errorf("%w: %s %s: %w", ErrUnreachable, method, path, err)
	}
	if resp.StatusCode/100 != 2 {
		why := After(": ", OneLine(refusal(text)))
		return StatusError{resp.StatusCode, fmt.Sprintf("%s %s: %s%s", method, path, resp.Status, why)}
	}
	if into == nil {
		return nil
	}
	if isPage(text) {
		return StatusError{http.StatusNotFound, fmt.Sprintf("%s %s: %s, with a page for a browser",
			method, path, resp.Status)}
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	return nil
}

// Send is call for what starts a job. Once begun it is not broken off, for nobody would know what has been taken by
// then: who is called off meanwhile has a job to end.
func (a API) Send(ctx context.Context, method, path string, body []byte) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return sent(a.Call(context.WithoutCancel(ctx), method, path, body, nil))
}

// mostAnswer bounds an answer, in bytes: a job's allocations with their events are long.
const mostAnswer = 64 << 20

// refusal is the text of a refused request: for JSON its message alone.
func refusal(text []byte) string {
	var answer struct {
		Diagnostics     string `json:"diagnostics"`
		RemoteException struct {
			Message string `json:"message"`
		}
	}
	if json.Unmarshal(text, &answer) == nil {
		if answer.Diagnostics != "" {
			return answer.Diagnostics
		}
		if answer.RemoteException.Message != "" {
			return answer.RemoteException.Message
		}
	}
	if isPage(text) {
		return ""
	}
	return string(text)
}

// isPage tells an answer that is for a browser: no launcher's API gives one.
func isPage(text []byte) bool { return bytes.HasPrefix(bytes.TrimSpace(text), []byte("<")) }

// TLSFiles say how an https: API is trusted, and who we are to it.
type TLSFiles struct {
	CA, Cert, Key, ServerName string
	Unchecked                 bool
}

// HTTPClient reaches an API by the environment's proxies; through a unix socket where the address is one.
func HTTPClient(address string, files TLSFiles) (base string, client *http.Client, err error) {
	transport := http.DefaultTransport.(*http.Transport).Clone() //nolint:forcetypeassert // documented to be one
	if path, ok := strings.CutPrefix(address, "unix://"); ok {
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", path)
		}
		return "http://localhost", &http.Client{Transport: transport, CheckRedirect: followed}, nil
	}
	if !strings.Contains(address, "://") {
		address = "http://" + address
	}
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return "", nil, fmt.Errorf("address %q: want http://HOST:PORT, https://HOST:PORT or unix://PATH", address)
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: files.ServerName}
	c.InsecureSkipVerify = files.Unchecked //nolint:gosec // only where NOMAD_SKIP_VERIFY says so
	if files.CA != "" {
		text, err := os.ReadFile(files.CA)
		if err != nil {
			return "", nil, err
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(text) {
			return "", nil, fmt.Errorf("%s: no certificate in it", files.CA)
		}
	}
	if files.Cert != "" || files.Key != "" {
		pair, err := tls.LoadX509KeyPair(files.Cert, files.Key)
		if err != nil {
			return "", nil, err
		}
		c.Certificates = []tls.Certificate{pair}
	}
	transport.TLSClientConfig = c
	client = &http.Client{Transport: transport, CheckRedirect: followed}
	return strings.TrimRight(u.Scheme+"://"+u.Host+u.Path, "/"), client, nil
}

// followed lets a launcher send its callers on, and no token with them to another origin.
func followed(to *http.Request, via []*http.Request) error {
	const most = 10
	if len(via) >= most {
		return fmt.Errorf("more than %d redirects, the last to host %s", most, to.URL.Host)
	}
	store.DropCredentials(to, via)
	return nil
}

// Missing tells an answer that says that there is no such thing.
func Missing(err error) bool {
	odd, ok := errors.AsType[StatusError](err)
	return ok && odd.Code == http.StatusNotFound
}
