package image

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"github.com/opencontainers/go-digest"
	ispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/muster-agent/muster/shim/wait"
)

// Limits and times of the talk with a registry.
const (
	tries     = 4                      // of a request, and of a download without a byte of progress
	firstWait = 250 * time.Millisecond // between tries; doubles
	dialTime  = 10 * time.Second
	idleTime  = 60 * time.Second // without a byte in either direction a connection is given up
	maxTags   = 12               // of those that exist, named when one does not
)

// registry speaks the distribution protocol (OCI Distribution Specification 1.1). The login is go-containerregistry's;
// the requests are made here, for a download must continue where it broke.
type registry struct {
	repo     name.Repository
	keychain authn.Keychain
	cache    cache
	tally    *tally
	base     guarded
	idle     func() // closes unused connections

	mu     sync.Mutex
	client *http.Client // nil until the registry has answered how to log in
}

func newRegistry(ref name.Reference, o Options, c cache, t *tally) *registry {
	dialer := net.Dialer{Timeout: dialTime}
	base := &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		TLSHandshakeTimeout:   dialTime,
		ResponseHeaderTimeout: idleTime,
		ForceAttemptHTTP2:     true,
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := dialer.DialContext(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			return idleConn{conn}, nil
		},
	}
	guard := guarded{
		inner: base, insecure: o.Insecure,
		near: loopback((&url.URL{Host: ref.Context().RegistryStr()}).Hostname()),
	}
	return &registry{
		repo: ref.Context(), keychain: o.keychain(), cache: c, tally: t, base: guard,
		idle: base.CloseIdleConnections,
	}
}

// idleConn fails when nothing was received for idleTime: a download that hangs is then retried.
type idleConn struct{ net.Conn }

func (c idleConn) Read(b []byte) (int, error) {
	if err := c.SetReadDeadline(time.Now().Add(idleTime)); err != nil {
		return 0, err
	}
	return c.Conn.Read(b)
}

// plainError is a request that would have gone out in the clear.
type plainError struct{ host string }

func (e *plainError) Error() string {
	return e.host + ": got an address with plain http, want https"
}

// guarded refuses plain http but to the hosts that were listed, and between a registry at a loopback address and others
// there: go-containerregistry falls back to it for private addresses, and a login or a redirect may name any address.
// One of a registry elsewhere must not have the agent ask what listens on its own host.
type guarded struct {
	inner    http.RoundTripper
	insecure []string
	near     bool // the registry is at a loopback address
}

func (g guarded) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Scheme != "https" && (!g.near || !loopback(r.URL.Hostname())) && !listed(r.URL.Host, g.insecure) {
		return nil, &plainError{host: r.URL.Host}
	}
	return g.inner.RoundTrip(r)
}

func loopback(host string) bool {
	if host == "localhost" {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.IsLoopback()
}

// connected logs in when that has not been done.
func (r *registry) connected(ctx context.Context) (*http.Client, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.client != nil {
		return r.client, nil
	}
	login, err := authn.Resolve(ctx, r.keychain, r.repo)
	if err != nil {
		return nil, fmt.Errorf("find a login for %s: %w", r.repo.RegistryStr(), err)
	}
	t, err := transport.NewWithContext(ctx, r.repo.Registry, login, r.base, []string{r.repo.Scope(transport.PullScope)})
	if err != nil {
		return nil, err
	}
	r.client = &http.Client{Transport: t}
	return r.client, nil
}

func (r *registry) close() { r.idle() }

// ask sends a request until it is answered with one of the codes, and gives up soon on an answer that will not change.
func (r *registry) ask(
	ctx context.Context, method, path string, header http.Header, codes ...int,
) (*http.Response, error) {
	pause := firstWait
	for try := 1; ; try++ {
		resp, err := r.askOnce(ctx, method, path, header, codes...)
		if err == nil || try == tries || !errors.Is(err, ErrUnreachable) || ctx.Err() != nil {
			return resp, err
		}
		if wait.For(ctx, pause) != nil {
			return nil, err
		}
		pause *= 2
	}
}

func (r *registry) askOnce(
	ctx context.Context, method, path string, header http.Header, codes ...int,
) (*http.Response, error) {
	client, err := r.connected(ctx)
	if err != nil {
		return nil, r.explain(ctx, err)
	}
	u := url.URL{Scheme: r.repo.Scheme(), Host: r.repo.RegistryStr(), Path: "/v2/" + r.repo.RepositoryStr() + path}
	req, err := http.NewRequestWithContext(ctx, method, u.String(), nil)
	if err != nil {
		return nil, err
	}
	maps.Copy(req.Header, header)
	resp, err := client.Do(req)
	if err != nil {
		return nil, r.explain(ctx, err)
	}
	if err := transport.CheckError(resp, codes...); err != nil {
		return nil, errors.Join(r.explain(ctx, err), resp.Body.Close())
	}
	return resp, nil
}

// explain makes one of the sentinels of what the library or the network says.
func (r *registry) explain(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	host := r.repo.RegistryStr()
	if plain, ok := errors.AsType[*plainError](err); ok {
		return fmt.Errorf("registry %s: %w", host, plain)
	}
	var answer *transport.Error
	if !errors.As(err, &answer) {
		return fmt.Errorf("registry %s: %w: %w", host, ErrUnreachable, err)
	}
	reason := http.StatusText(answer.StatusCode)
	for _, d := range answer.Errors {
		reason += ": " + d.String()
	}
	reason = strconv.Itoa(answer.StatusCode) + " " + printable(reason)
	switch {
	case answer.StatusCode == http.StatusUnauthorized, answer.StatusCode == http.StatusForbidden:
		return fmt.Errorf("registry %s: %w: %s", host, ErrUnauthorized, reason)
	case answer.StatusCode == http.StatusNotFound:
		return fmt.Errorf("registry %s: %w: %s", host, ErrNotFound, reason)
	case answer.StatusCode == http.StatusTooManyRequests, answer.StatusCode >= http.StatusInternalServerError:
		return fmt.Errorf("registry %s: %w: %s", host, ErrUnreachable, reason)
	}
	return fmt.Errorf("registry %s: %s", host, reason)
}

// manifestTypes is what we can read.
var manifestTypes = strings.Join([]string{
	ispec.MediaTypeImageIndex, ispec.MediaTypeImageManifest, dockerIndex, dockerManifest,
}, ", ")

// resolve asks what the reference means now: a HEAD, which registries do not count against a pull limit.
func (r *registry) resolve(ctx context.Context, reference string) (ispec.Descriptor, error) {
	accept := http.Header{"Accept": {manifestTypes}}
	resp, err := r.ask(ctx, http.MethodHead, "/manifests/"+reference, accept, http.StatusOK)
	if err != nil {
		return ispec.Descriptor{}, r.others(ctx, err)
	}
	d := ispec.Descriptor{
		MediaType: mediaType(resp),
		Digest:    digest.Digest(resp.Header.Get("Docker-Content-Digest")),
		Size:      resp.ContentLength,
	}
	if err := resp.Body.Close(); err != nil {
		return ispec.Descriptor{}, err
	}
	if d.Digest.Validate() == nil && d.Size >= 0 {
		return d, nil
	}
	// a registry that does not say: the manifest itself does
	text, kind, err := r.get(ctx, "/manifests/"+reference, accept, maxManifest)
	if err != nil {
		return ispec.Descriptor{}, err
	}
	d = ispec.Descriptor{MediaType: kind, Digest: digest.FromBytes(text), Size: int64(len(text))}
	return d, r.cache.keep(d.Digest, text)
}

// others adds to a tag that is not there those that are.
func (r *registry) others(ctx context.Context, err error) error {
	if !errors.Is(err, ErrNotFound) {
		return err
	}
	text, _, listErr := r.get(ctx, "/tags/list", nil, maxManifest)
	var list struct {
		Tags []string `json:"tags"`
	}
	if listErr != nil || json.Unmarshal(text, &list) != nil || len(list.Tags) == 0 {
		return err
	}
	more := ""
	if len(list.Tags) > maxTags {
		more = fmt.Sprintf(" and %d more", len(list.Tags)-maxTags)
		list.Tags = list.Tags[:maxTags]
	}
	return fmt.Errorf("%w; tags of %s that are there: %s%s", err, r.repo.RepositoryStr(),
		printable(strings.Join(list.Tags, ", ")), more)
}

// small fetches a manifest, an index or a configuration, checked.
func (r *registry) small(ctx context.Context, what string, d ispec.Descriptor) ([]byte, error) {
	if text, err := r.cache.blob(what, d.Digest); err == nil {
		return text, nil
	}
	path, accept := "/blobs/"+d.Digest.String(), http.Header(nil)
	if readableManifest(d.MediaType) || d.MediaType == "" {
		path, accept = "/manifests/"+d.Digest.String(), http.Header{"Accept": {manifestTypes}}
	}
	text, _, err := r.get(ctx, path, accept, maxManifest)
	if err != nil {
		return nil, err
	}
	if err := checkBytes(what, d.Digest, text); err != nil {
		return nil, err
	}
	return text, r.cache.keep(d.Digest, text)
}

// get reads a small answer whole.
func (r *registry) get(
	ctx context.Context, path string, header http.Header, most int64,
) (text []byte, kind string, err error) {
	resp, err := r.ask(ctx, http.MethodGet, path, header, http.StatusOK)
	if err != nil {
		return nil, "", err
	}
	text, err = io.ReadAll(io.LimitReader(resp.Body, most+1))
	if err = errors.Join(err, resp.Body.Close()); err != nil {
		return nil, "", r.explain(ctx, err)
	}
	if int64(len(text)) > most {
		return nil, "", refuse("%s: got more than %d bytes", path, most)
	}
	return text, mediaType(resp), nil
}

// mediaType is what an answer says that it is, without parameters; empty when it says nothing that can be read.
func mediaType(resp *http.Response) string {
	kind, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if err != nil {
		return ""
	}
	return kind
}

// printable makes a registry's text short and harmless to a terminal.
func printable(s string) string {
	const most = 500
	if len(s) > most {
		s = s[:most] + "…"
	}
	return strings.Map(func(c rune) rune {
		if strconv.IsPrint(c) {
			return c
		}
		return '?'
	}, s)
}
