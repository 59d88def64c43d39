package gate

import (
	"context"
	"crypto/hkdf"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"html/template"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/shim/status"
)

// parameter is the part of a URL's query that shows the key.
const parameter = "token"

// keySize is the size of a key, bytes; it is written as hexadecimal digits.
const keySize = 20

// Key is the key of a side process. The error says that the run has no token.
func Key(token, app, instance, side string) (string, error) {
	if token == "" {
		return "", errors.New("key of a page: the run has no token")
	}
	info := "muster page\x00" + app + "\x00" + instance + "\x00" + side
	key, err := hkdf.Key(sha256.New, []byte(token), nil, info, keySize)
	if err != nil {
		return "", fmt.Errorf("key of a page: %w", err)
	}
	return hex.EncodeToString(key), nil
}

// Page is a program that answers HTTP at the loopback of this host.
type Page struct {
	Name string // of the side process, for people
	Port int
	Key  string
	Log  *slog.Logger
}

const (
	// mostConnections bounds those of browsers: whoever reaches the host may make some.
	mostConnections = 256
	headPatience    = 10 * time.Second
	idlePatience    = 2 * time.Minute
)

// Serve answers at l until ctx is done, and closes l. Connections are broken off then: the program has ended.
func Serve(ctx context.Context, l net.Listener, p Page) error {
	server := &http.Server{
		Handler: p.handler(), ReadHeaderTimeout: headPatience, IdleTimeout: idlePatience,
		ErrorLog:    slog.NewLogLogger(p.Log.Handler(), slog.LevelDebug),
		BaseContext: func(net.Listener) context.Context { return ctx },
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, connectionKey{}, c)
		},
	}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	err := server.Serve(status.Bounded(l, mostConnections))
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// connectionKey is the connection of a request.
type connectionKey struct{}

// welcome has a connection that has shown the key stay when there are too many, and take its time.
func welcome(w http.ResponseWriter, r *http.Request) {
	if one, ok := r.Context().Value(connectionKey{}).(interface{ Known() }); ok {
		one.Known()
	}
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{}) // fails when the connection is closed
}

// cookie is where a browser keeps the key. Cookies are of a host, whatever the port.
func (p Page) cookie() string { return fmt.Sprint(cookiePrefix, p.Port) }

const cookiePrefix = "muster_key_"

// handler asks for the key: as the parameter of a link, which becomes a cookie, as a bearer's token, or as the password
// of any user.
func (p Page) handler() http.Handler {
	to := &url.URL{Scheme: "http", Host: fmt.Sprintf("127.0.0.1:%d", p.Port)}
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(to)
			r.Out.Host = r.In.Host                 // links that the program makes of it lead back here
			r.Out.URL.RawQuery = r.In.URL.RawQuery // as it is: the program may know more forms than Go
			p.forget(r.Out)
		},
		ErrorLog: slog.NewLogLogger(p.Log.Handler(), slog.LevelDebug),
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) {
			http.Error(w, p.Name+" does not answer: it may be about to start, or have ended", http.StatusBadGateway)
		},
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// A stranger's body is not waited for.
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(headPatience))
		query := r.URL.Query()
		switch {
		case p.shown(r) && !query.Has(parameter):
			pass(w, r, proxy)
		case p.is(query.Get(parameter)) && (r.Method == http.MethodGet || r.Method == http.MethodHead):
			query.Del(parameter)
			http.SetCookie(w, &http.Cookie{
				Name: p.cookie(), Value: p.Key, Path: "/", HttpOnly: true, SameSite: http.SameSiteLaxMode,
			})
			w.Header().Set("Cache-Control", "no-store")
			w.Header().Set("Referrer-Policy", "no-referrer")
			at := "/" + strings.TrimLeft(r.URL.EscapedPath(), "/")
			if rest := query.Encode(); rest != "" {
				at += "?" + rest
			}
			http.Redirect(w, r, at, http.StatusSeeOther)
		case p.shown(r):
			pass(w, r, proxy)
		default:
			p.refuse(w)
		}
	})
}

// pass hands a request that has shown the key on, unless another page has a browser send it.
func pass(w http.ResponseWriter, r *http.Request, to http.Handler) {
	if err := mayAsk(r); err != nil {
		http.Error(w, err.Error(), http.StatusForbidden)
		return
	}
	welcome(w, r)
	to.ServeHTTP(w, r)
}

// mayAsk refuses an act, and an upgrade, of another page. A browser sends it with our cookie where that page is of the
// same site: at another port of this host, or at another host of its domain. A look gives nothing away: that page does
// not see the answer. Programs other than browsers name no origin.
func mayAsk(r *http.Request) error {
	look := slices.Contains([]string{http.MethodGet, http.MethodHead, http.MethodOptions}, r.Method) &&
		r.Header.Get("Upgrade") == ""
	origin := r.Header.Get("Origin")
	if look || origin == "" {
		return nil
	}
	if u, err := url.Parse(origin); err != nil || !strings.EqualFold(u.Host, r.Host) { // what "null" has is no host
		return fmt.Errorf("origin %q: only this page itself, at %q, may ask here", origin, r.Host)
	}
	return nil
}

func (p Page) is(key string) bool { return subtle.ConstantTimeCompare([]byte(key), []byte(p.Key)) == 1 }

// shown tells that a request has the key in a header.
func (p Page) shown(r *http.Request) bool {
	if bearer, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok && p.is(bearer) {
		return true
	}
	if _, password, ok := r.BasicAuth(); ok && p.is(password) {
		return true
	}
	return slices.ContainsFunc(r.CookiesNamed(p.cookie()), func(c *http.Cookie) bool { return p.is(c.Value) })
}

// forget takes the key out of a request that the program gets.
func (p Page) forget(r *http.Request) {
	if _, password, ok := r.BasicAuth(); ok && p.is(password) || r.Header.Get("Authorization") == "Bearer "+p.Key {
		r.Header.Del("Authorization")
	}
	// A browser sends the cookies of all ports of the host. The others stay as they are written.
	others := r.Header.Values("Cookie")
	r.Header.Del("Cookie")
	for _, line := range others {
		kept := slices.DeleteFunc(strings.Split(line, ";"), func(c string) bool {
			return strings.HasPrefix(strings.TrimSpace(c), cookiePrefix)
		})
		if text := strings.TrimSpace(strings.Join(kept, ";")); text != "" {
			r.Header.Add("Cookie", text)
		}
	}
	if query := r.URL.Query(); slices.ContainsFunc(query[parameter], p.is) {
		query.Del(parameter)
		r.URL.RawQuery = query.Encode()
	}
}

// Show adds the key to a request, as the cookie that a browser has for a program at that port of the loopback. The
// page's own authorization stays what it is.
func Show(r *http.Request, inner int, key string) {
	r.AddCookie(&http.Cookie{Name: Page{Port: inner}.cookie(), Value: key})
}

var refusal = template.Must(template.New("").Parse(`<!doctype html><html lang="en"><title>{{.}}</title>
<p>{{.}} asks for its key: open it by the link that <code>muster status</code> prints, or from <code>muster ui</code>.
`))

func (p Page) refuse(w http.ResponseWriter) {
	w.Header().Set("Connection", "close")
	w.Header().Set("WWW-Authenticate", `Basic realm="muster"`)
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", "default-src 'none'")
	w.WriteHeader(http.StatusUnauthorized)
	_ = refusal.Execute(w, p.Name) // nobody reads any more
}

// Asks is the side process before whose page an agent asks for a key at a URL, by the host and the ports of its
// instance; empty: none.
func Asks(of status.Location, at string) (side string) {
	u, err := url.Parse(at)
	if err != nil || u.Scheme != "http" || !sameHost(u.Hostname(), of.Host) {
		return ""
	}
	for name, port := range of.Ports {
		side, ok := appdef.CutSidePort(name)
		if _, keyed := of.Ports[appdef.SideInnerPort(side)]; ok && keyed && u.Port() == strconv.Itoa(port) {
			return side
		}
	}
	return ""
}

// sameHost tells whether two names or addresses are the same host's as they are written: another host gets no key.
func sameHost(a, b string) bool {
	return a != "" && strings.EqualFold(a, b) || address(a).IsValid() && address(a) == address(b)
}

// address is the one that a host is written as; localhost is the loopback's.
func address(host string) netip.Addr {
	if strings.EqualFold(host, "localhost") {
		return netip.AddrFrom4([4]byte{127, 0, 0, 1})
	}
	at, err := netip.ParseAddr(host)
	if err != nil {
		return netip.Addr{}
	}
	return at.Unmap()
}

// Shown are an instance's exports with the keys of the pages to which they lead, for who may have them.
func Shown(token, app, instance string, at status.Location) map[string]string {
	shown := maps.Clone(at.Exports)
	for name, value := range at.Exports {
		side := Asks(at, value)
		if side == "" {
			continue
		}
		if key, err := Key(token, app, instance, side); err == nil {
			shown[name] = withKey(value, key)
		}
	}
	return shown
}

func withKey(at, key string) string {
	u, err := url.Parse(at)
	if err != nil {
		return at
	}
	query := u.Query()
	query.Set(parameter, key)
	u.RawQuery = query.Encode()
	if u.Path == "" {
		u.Path = "/"
	}
	return u.String()
}
