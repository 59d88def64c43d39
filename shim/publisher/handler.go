package publisher

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// viewSource is what the answers come from.
type viewSource interface {
	// View reads the app as it is now. It is asked at most once a second, however many ask here.
	View(ctx context.Context) (View, error)
	// Stop asks for the end of the whole app and returns when that is written down; by says who asked.
	Stop(ctx context.Context, by string) error
}

// failure is the body of every error answer.
type failure struct {
	Error string `json:"error"`
	Hint  string `json:"hint"`
}

// maxBody bounds what is read of a request, in bytes.
const maxBody = 64 << 10

// Handler answers below prefix (`/<32 hex>`, see Listen), and to nothing else: who does not know it learns nothing, by
// time neither. A request must name this address or the loopback as its host, or a page of a browser whose name was
// bound to this address anew could read here.
func Handler(prefix string, s viewSource) http.Handler {
	return &handler{secret: strings.Trim(prefix, "/"), views: &views{source: s}, source: s}
}

type handler struct {
	secret string
	views  *views
	source viewSource
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	path, err := segments(r.URL)
	if err != nil || len(path) == 0 || !same(path[0], h.secret) {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	if err := fromHere(r); err != nil {
		refuse(w, err)
		return
	}
	if err := h.answer(w, r, "http://"+r.Host+"/"+h.secret, path[1:]); err != nil {
		refuse(w, err)
	}
}

// Answer answers one request for a path, which begins with root, of an app: who asks was let in already. base is the
// URL that stands before root.
func Answer(w http.ResponseWriter, r *http.Request, base, path string, s viewSource) {
	asked, err := segments(&url.URL{Path: path})
	if err == nil {
		h := &handler{views: &views{source: s}, source: s}
		err = h.answer(w, r, base, asked)
	}
	if err != nil {
		refuse(w, err)
	}
}

// Guarded lets requests pass to routes that are put in front of Handler's as it lets them pass itself. What does not
// begin with the prefix is answered as if nothing were there.
func Guarded(prefix string, next http.Handler) http.Handler {
	secret := strings.Trim(prefix, "/")
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path, err := segments(r.URL)
		if err != nil || len(path) == 0 || !same(path[0], secret) {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		if c, ok := r.Context().Value(connectionKey{}).(interface{ Known() }); ok {
			c.Known() // to a listener that bounds strangers
		}
		if err := fromHere(r); err != nil {
			refuse(w, err)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// fromHere refuses what a browser sends for a page of another origin, or of a name that was bound to this address anew.
func fromHere(r *http.Request) error {
	if !hostAllowed(r.Host, localAddr(r)) {
		return &refusal{
			status: http.StatusMisdirectedRequest, text: "host " + strconv.Quote(r.Host) + " is not this address",
			hint: "ask by the address of the URL as it was given",
		}
	}
	for _, origin := range r.Header.Values("Origin") {
		if !strings.EqualFold(origin, "http://"+r.Host) {
			return &refusal{
				status: http.StatusForbidden, text: "origin " + strconv.Quote(origin) + " is not this address",
				hint: "pages of other origins may not ask here",
			}
		}
	}
	return nil
}

func (h *handler) answer(w http.ResponseWriter, r *http.Request, base string, path []string) error {
	unknown := notFound(r.Method+" "+"/"+strings.Join(path, "/")+" is not here",
		root+"/publisher, "+root+"/application/live, "+root+"/application/model, "+root+"/registry")
	top := strings.Split(root[1:], "/")
	if len(path) < len(top) || strings.Join(path[:len(top)], "/") != root[1:] {
		return unknown
	}
	route, names, rest, ok := find(path[len(top):])
	if !ok {
		return unknown
	}
	if !route.allows(r.Method) {
		w.Header().Set("Allow", strings.Join(route.verbs, ", "))
		return &refusal{status: http.StatusMethodNotAllowed, text: r.Method + " is not answered here", hint: "use " +
			strings.Join(route.verbs, ", ")}
	}
	body, err := readBody(w, r)
	if err != nil {
		return err
	}
	q := question{
		base: base, verb: r.Method, body: body, now: time.Now(), names: names,
		rest: rest,
	}
	q.stop = func(by string) error { return h.stop(r.Context(), by) }
	if !route.blind {
		if q.view, err = h.views.get(r.Context()); err != nil {
			w.Header().Set("Retry-After", "1")
			return &refusal{
				status: http.StatusServiceUnavailable, text: err.Error(),
				hint: "the registry cannot be read: ask again",
			}
		}
	}
	a, err := route.answer(q)
	if err != nil {
		return err
	}
	send(w, a)
	return nil
}

// Get is what a GET of a path below root answers of this view; nil for an empty answer.
func Get(v View, path ...string) ([]byte, error) {
	route, names, rest, ok := find(path)
	if !ok {
		return nil, notFound(strings.Join(path, "/")+" is not here", "")
	}
	a, err := route.answer(question{view: v, verb: http.MethodGet, now: time.Now(), names: names, rest: rest})
	return a.body, err
}

// stop is asked to the end: a script may go as soon as it has asked.
func (h *handler) stop(ctx context.Context, by string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	return h.source.Stop(ctx, by)
}

// segments are the names between the slashes; empty ones do not count: a base with a slash at its end is usual.
func segments(u *url.URL) ([]string, error) {
	var out []string
	for s := range strings.SplitSeq(u.EscapedPath(), "/") {
		name, err := url.PathUnescape(s)
		if err != nil {
			return nil, err
		}
		if name != "" {
			out = append(out, name)
		}
	}
	return out, nil
}

// same compares in a time that tells neither a common beginning nor a length.
func same(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return b != "" && subtle.ConstantTimeCompare(x[:], y[:]) == 1
}

// localAddr is where the request came in; invalid when it is not known.
func localAddr(r *http.Request) netip.Addr {
	if tcp, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr); ok {
		return tcp.AddrPort().Addr().Unmap()
	}
	return netip.Addr{}
}

func hostAllowed(host string, local netip.Addr) bool {
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	if name == "localhost" {
		return true
	}
	addr, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(name, "["), "]"))
	return err == nil && (addr.Unmap().IsLoopback() || addr.Unmap() == local)
}

func readBody(w http.ResponseWriter, r *http.Request) (string, error) {
	b, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		return "", &refusal{status: http.StatusRequestEntityTooLarge, text: "body: more than " + strconv.Itoa(maxBody) +
			" bytes", hint: "nothing here needs one"}
	}
	if err != nil {
		return "", &refusal{status: http.StatusBadRequest, text: "body: " + err.Error(), hint: "send it whole, or none"}
	}
	return string(b), nil
}

func send(w http.ResponseWriter, a answer) {
	if a.status == http.StatusNoContent {
		w.WriteHeader(a.status)
		return
	}
	w.Header().Set("Content-Type", a.contentType)
	w.Header().Set("Content-Length", strconv.Itoa(len(a.body)))
	_, _ = w.Write(a.body) // the asker is gone
}

// refuse says why in JSON; what is no refusal is our own fault.
func refuse(w http.ResponseWriter, err error) {
	r := (*refusal)(nil)
	if !errors.As(err, &r) {
		r = &refusal{status: http.StatusInternalServerError, text: err.Error(), hint: "this is a fault of muster"}
	}
	w.Header().Set("Content-Type", typeJSON)
	w.WriteHeader(r.status)
	_ = json.NewEncoder(w).Encode(failure{Error: r.text, Hint: r.hint}) // the asker is gone
}
