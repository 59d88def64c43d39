package web

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/muster-agent/muster/shim/store"
)

const (
	maxRedirects = 10
	maxAfter     = 5 * time.Minute // that a server may ask us to wait
)

// web is the files of one http server. It is read only.
type web struct {
	base   *url.URL // scheme, login and host
	client *http.Client
}

// Open is the store of an http server, by the environment's proxies and the system's certificates.
func Open(ctx context.Context, url string) (store.Store, string, error) {
	return With(http.Client{})(ctx, url)
}

// With opens by a client. Its redirects are bounded here in any case.
func With(client http.Client) store.Opener {
	client.CheckRedirect = checkRedirect
	return func(_ context.Context, url string) (store.Store, string, error) { return open(&client, url) }
}

func open(client *http.Client, raw string) (store.Store, string, error) {
	u, err := url.Parse(raw)
	if err != nil {
		return nil, "", &store.Error{
			Op:   "open",
			URL:  store.Printable(raw),
			Err:  errors.New("got an address that cannot be read"),
			Hint: "write https://HOST/PATH, with blanks as %20",
		}
	}
	if u.Host == "" || u.Opaque != "" {
		return nil, "", &store.Error{
			Op: "open", URL: store.Printable(raw), Err: errors.New("got no host"), Hint: "write https://HOST/PATH",
		}
	}
	w := &web{base: &url.URL{Scheme: strings.ToLower(u.Scheme), User: u.User, Host: u.Host}, client: client}
	return w, u.RequestURI(), nil
}

// checkRedirect bounds redirects, and refuses one after which anybody on the way could change the file, or by which a
// server elsewhere reaches what listens on this machine.
func checkRedirect(to *http.Request, via []*http.Request) error {
	if len(via) >= maxRedirects {
		return fmt.Errorf(
			"%w: got more than %d one after another, the last to host %s", store.ErrRedirect, maxRedirects, to.URL.Host,
		)
	}
	if to.URL.Scheme != "http" && to.URL.Scheme != "https" {
		return fmt.Errorf("%w: got one to scheme %.20s", store.ErrRedirect, to.URL.Scheme)
	}
	if via[len(via)-1].URL.Scheme == "https" && to.URL.Scheme != "https" {
		return fmt.Errorf("%w: got one from https to %s at host %s", store.ErrRedirect, to.URL.Scheme, to.URL.Host)
	}
	if here(to.URL.Hostname()) && !here(via[0].URL.Hostname()) {
		return fmt.Errorf(
			"%w: got one from host %s to %s, which is this machine", store.ErrRedirect, via[0].URL.Host, to.URL.Host,
		)
	}
	store.DropCredentials(to, via)
	return nil
}

// here tells a name or address of this machine. A server elsewhere must not have us ask what listens on it.
func here(host string) bool {
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	ip := net.ParseIP(host)
	return ip != nil && (ip.IsLoopback() || ip.IsUnspecified()) || host == "localhost" ||
		strings.HasSuffix(host, ".localhost")
}

// URL is a path of this server as it is written elsewhere, with the login and the query: Printable hides them.
func (w *web) URL(path string) string { return w.url(path) }

func (w *web) url(path string) string { return w.base.String() + path }

func (w *web) ask(ctx context.Context, method, path string, header http.Header) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, w.url(path), nil)
	if err != nil {
		return nil, err
	}
	maps.Copy(req.Header, header)
	req.Header.Set("Accept-Encoding", "identity") // the file's own bytes are wanted
	req.Header.Set("User-Agent", "muster")
	resp, err := w.client.Do(req)
	if err != nil {
		if resp != nil { // a redirect that was refused
			err = errors.Join(err, resp.Body.Close())
		}
		return nil, network(ctx, err)
	}
	return resp, nil
}

// statusOf is the error that an answer is.
func statusOf(resp *http.Response) error {
	return &store.StatusError{Code: resp.StatusCode, After: parseRetryAfter(resp.Header.Get("Retry-After"), time.Now())}
}

// parseRetryAfter reads both forms of RFC 9110, 10.2.3. What is not one of them is 0.
func parseRetryAfter(text string, now time.Time) time.Duration {
	var after time.Duration
	if seconds, err := strconv.ParseUint(text, 10, 31); err == nil {
		after = time.Duration(seconds) * time.Second //nolint:gosec // 31 bits
	} else if at, err := http.ParseTime(text); err == nil {
		after = at.Sub(now)
	}
	return min(max(after, 0), maxAfter)
}

func (w *web) Stat(ctx context.Context, path string) (store.Info, error) {
	resp, err := w.ask(ctx, http.MethodHead, path, nil)
	if err == nil && (resp.StatusCode == http.StatusMethodNotAllowed || resp.StatusCode == http.StatusNotImplemented) {
		_ = resp.Body.Close()
		resp, err = w.ask(ctx, http.MethodGet, path, nil)
	}
	if err != nil {
		return store.Info{}, store.Explain("stat", w.url(path), err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return store.Info{}, store.Explain("stat", w.url(path), statusOf(resp))
	}
	return describeAnswer(path, resp.Header, resp.ContentLength), nil
}

func (w *web) Open(ctx context.Context, path string, at store.Position) (*store.Content, error) {
	c, err := w.open(ctx, path, at)
	if errors.Is(err, errNoRange) {
		c, err = w.open(ctx, path, store.Position{})
	}
	return c, store.Explain("open", w.url(path), err)
}

// errNoRange is an answer that does not fit to what was asked: the file is read from its start then.
var errNoRange = errors.New("no such range")

func (w *web) open(ctx context.Context, path string, at store.Position) (_ *store.Content, err error) {
	header := http.Header{}
	if at.Offset > 0 {
		header.Set("Range", fmt.Sprintf("bytes=%d-", at.Offset))
		if at.Validator != "" {
			header.Set("If-Range", at.Validator)
		}
	}
	resp, err := w.ask(ctx, http.MethodGet, path, header)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = resp.Body.Close()
		}
	}()
	c := &store.Content{ReadCloser: body{resp.Body, ctx}}
	switch {
	case at.Offset > 0 && resp.StatusCode == http.StatusRequestedRangeNotSatisfiable:
		return nil, errNoRange
	case at.Offset > 0 && resp.StatusCode == http.StatusPartialContent:
		part, err := parseContentRange(resp.Header.Get("Content-Range"))
		c.Info, c.Offset = describeAnswer(path, resp.Header, part.total), at.Offset
		if err != nil || part.first != at.Offset || resp.ContentLength >= 0 &&
			resp.ContentLength != part.last-part.first+1 || changed(at, resp.Header) {
			return nil, errNoRange
		}
		if c.Info.Validator == "" {
			c.Info.Validator = at.Validator
		}
	case resp.StatusCode == http.StatusOK:
		c.Info = describeAnswer(path, resp.Header, resp.ContentLength)
	case resp.StatusCode == http.StatusPartialContent:
		return nil, fmt.Errorf("%w: got a part of the file where all was asked for", store.ErrProtocol)
	default:
		return nil, statusOf(resp)
	}
	if coding := resp.Header.Get("Content-Encoding"); coding != "" && !strings.EqualFold(coding, "identity") {
		return nil, fmt.Errorf("%w: got the file coded as %.40q, which was not asked for", store.ErrProtocol, coding)
	}
	return c, nil
}

// changed tells a part of another version than that which the validator is of.
func changed(at store.Position, h http.Header) bool {
	if at.Validator == "" {
		return false
	}
	if strings.HasPrefix(at.Validator, `"`) {
		tag := h.Get("Etag")
		return tag != "" && tag != at.Validator
	}
	date := h.Get("Last-Modified")
	return date != "" && date != at.Validator
}

func describeAnswer(path string, h http.Header, size int64) store.Info {
	i := store.Info{Path: path, Size: size, Validator: validator(h)}
	if at, err := http.ParseTime(h.Get("Last-Modified")); err == nil {
		i.ModTime = at
	}
	return i
}

// body tells of a broken connection in our words.
type body struct {
	io.ReadCloser
	ctx context.Context
}

func (b body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = network(b.ctx, err)
	}
	return n, err
}

// refused says what would do instead of what http cannot.
func (w *web) refused(op, path, instead string) error {
	return &store.Error{
		Op:   op,
		URL:  store.Printable(w.url(path)),
		Err:  fmt.Errorf("http is for reading alone: %w", errors.ErrUnsupported),
		Hint: instead,
	}
}

func (w *web) List(_ context.Context, path string) ([]store.Info, error) {
	return nil, w.refused("list", path, "name each file, or a folder of a store that can list")
}

func (w *web) Create(_ context.Context, path string) (io.WriteCloser, error) {
	return nil, w.refused(
		"create", path, "put it into the folder that the server shows, by file:, or by the server's own tool",
	)
}

func (w *web) Rename(_ context.Context, from, _ string) error {
	return w.refused("rename", from, "do it in the folder that the server shows, by file:")
}

func (w *web) Remove(_ context.Context, path string) error {
	return w.refused("remove", path, "do it in the folder that the server shows, by file:")
}

// network tells what an error of the http client means; it has neither the address with its password nor the query.
func network(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	if outer, ok := errors.AsType[*url.Error](err); ok {
		err = outer.Err
	}
	var (
		unknown *tls.CertificateVerificationError
		name    x509.HostnameError
		alert   tls.AlertError
		record  tls.RecordHeaderError
	)
	switch {
	case errors.Is(err, store.ErrRedirect):
		return err
	case errors.As(err, &unknown), errors.As(err, &name), errors.As(err, &alert):
		return fmt.Errorf("%w: %w", store.ErrTLS, err)
	case errors.As(err, &record), errors.Is(err, http.ErrSchemeMismatch):
		return &store.Error{
			Err:  fmt.Errorf("%w: %w", store.ErrTLS, err),
			Hint: "it does not speak https there: check the port, or write http: if you trust the network",
		}
	}
	return fmt.Errorf("%w: %w", store.ErrUnreachable, err)
}

// MkdirAll is not supported: a web server is for reading.
func (w *web) MkdirAll(_ context.Context, path string) error {
	return w.refused("make folder", path, "do it in the folder that the server shows, by file:")
}

// Prune is not supported either.
func (w *web) Prune(_ context.Context, path string) error {
	return w.refused("remove", path, "do it in the folder that the server shows, by file:")
}
