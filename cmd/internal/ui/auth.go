package ui

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"embed"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	loginPath = "/login"
	// sessionCookie begins the name of what proves who a browser is.
	sessionCookie = "muster_ui"
	// mostSessions is how many browsers are known; the oldest is forgotten.
	mostSessions = 64
)

// caller is who asks. Whoever is let in may look.
type caller struct {
	Name string `json:"name"`
	Act  bool   `json:"act"` // may stop, change and save apps, and start programs in them
	// browser tells that a browser sends by itself what proves who asks, also when a stranger's page has it do so.
	browser bool
}

type callerKey struct{}

// callerOf is whom guard has let in.
func callerOf(ctx context.Context) caller {
	c, _ := ctx.Value(callerKey{}).(caller)
	return c
}

// sessions are the browsers that have opened a link.
type sessions struct {
	mu   sync.Mutex
	link string // that was not opened yet
	open []string
}

// newLink makes the secret of the next link, in place of the last one.
func (s *sessions) newLink() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.link = rand.Text()
	return s.link
}

func (s *sessions) use(key string) (session string, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !equal(s.link, key) {
		return "", false
	}
	s.link = ""
	session = rand.Text()
	s.open = append(s.open, session)
	s.open = s.open[max(0, len(s.open)-mostSessions):]
	return session, true
}

func (s *sessions) end(session string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open = slices.DeleteFunc(s.open, func(one string) bool { return equal(one, session) })
}

func (s *sessions) has(session string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.open, func(one string) bool {
		return equal(one, session)
	})
}

// equal compares in a time that tells nothing. Nothing is equal to an empty secret.
func equal(secret, shown string) bool {
	return secret != "" && subtle.ConstantTimeCompare([]byte(secret), []byte(shown)) == 1
}

//go:embed login.html
var loginPage embed.FS

// login opens a session for who shows a link's secret, which is used up by it, or asks for a token.
func (s *Server) login(w http.ResponseWriter, r *http.Request) {
	key := r.URL.Query().Get("key")
	if s.Link == nil && key == "" {
		w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'self'; img-src 'self'; "+
			"form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
		w.Header().Set("Referrer-Policy", "same-origin") // without it a form says no origin
		http.ServeFileFS(w, r, loginPage, "login.html")
		return
	}
	session, ok := s.sessions.use(key)
	if !ok {
		http.Error(w, "This link has been used, or is another server's. Take the newest that muster ui has printed.",
			http.StatusForbidden)
		return
	}
	s.announce()
	s.keep(w, session)
	http.Redirect(w, r, "/", http.StatusSeeOther)
}

// loginByToken has a browser show a token from now on. The server stores nothing, so that any of several answers it.
func (s *Server) loginByToken(w http.ResponseWriter, r *http.Request) {
	token := strings.TrimSpace(r.PostFormValue("token"))
	if _, ok := s.Access.tokenOf(token); !ok || !s.sameOrigin(r) {
		http.Error(w, "No token of this server. Go back and try another one.", http.StatusForbidden)
		return
	}
	s.keep(w, token)
	http.Redirect(w, r, "/", http.StatusSeeOther)
}

// cookie is the whole name of a cookie of this server's. Browsers send a host's cookies to all of its ports, so the
// port is in it; and over https no other name of the same domain can set it.
func (s *Server) cookie(name string) string {
	if _, port, err := net.SplitHostPort(s.host); err == nil {
		name += "_" + port
	}
	if s.secure() {
		name = "__Host-" + name
	}
	return name
}

// ownCookie tells whether a cookie is one of this server's, or of another one's on this host.
func ownCookie(name string) bool {
	name = strings.TrimPrefix(name, "__Host-")
	return strings.HasPrefix(name, sessionCookie) || strings.HasPrefix(name, pageCookie)
}

func (s *Server) secure() bool { return strings.HasPrefix(s.base, "https:") }

func (s *Server) keep(w http.ResponseWriter, secret string) {
	http.SetCookie(w, &http.Cookie{
		Name: s.cookie(sessionCookie), Value: secret, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode,
		Secure: s.secure(),
	})
}

// shown is what a request's cookie shows; "": nothing.
func (s *Server) shown(r *http.Request) string {
	cookie, err := r.Cookie(s.cookie(sessionCookie))
	if err != nil {
		return ""
	}
	return cookie.Value
}

// logout has a browser forget what proves who it is, and ends what it has open: its session, the pages of apps, and
// each answer that goes on.
func (s *Server) logout(w http.ResponseWriter, r *http.Request) {
	if !s.sameOrigin(r) {
		http.Error(w, "Only this server's own page logs out.", http.StatusForbidden)
		return
	}
	secret := s.shown(r)
	who, known := s.whoAsks(r)
	same := func(by *http.Request) bool {
		if secret != "" || !known || who.Name == "" {
			return equal(secret, s.shown(by))
		}
		other, ok := s.whoAsks(by) // a proxy's user, who shows nothing to this server
		return ok && other.Name == who.Name
	}
	s.sessions.end(secret)
	s.pages.end(same)
	s.watched.end(func(one *watching) bool { return same(one.by) })
	http.SetCookie(w, &http.Cookie{
		Name: s.cookie(sessionCookie), Path: "/", MaxAge: -1, HttpOnly: true, SameSite: http.SameSiteStrictMode,
		Secure: s.secure(),
	})
	w.WriteHeader(http.StatusNoContent)
}

// whoAsks finds out by a token, a browser's cookie, or the proxy's word.
func (s *Server) whoAsks(r *http.Request) (c caller, ok bool) {
	if token, found := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); found {
		return s.Access.tokenOf(token)
	}
	if c, ok := s.Access.proxied(r); ok {
		c.browser = true
		return c, true
	}
	secret := s.shown(r)
	if s.sessions.has(secret) { // the user who has started this server
		return caller{Act: true, browser: true}, true
	}
	c, ok = s.Access.tokenOf(secret)
	c.browser = true
	return c, ok
}

// stays tells whether a request shows the same caller still.
func (s *Server) stays(by *http.Request, who caller) func() bool {
	return func() bool {
		now, ok := s.whoAsks(by)
		return ok && now == who
	}
}

// guard lets those through who may look.
func (s *Server) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, ok := s.whoAsks(r)
		switch {
		case ok:
			welcome(r)
			r, done := s.watched.add(r, r, s.stays(r, c))
			defer done()
			next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), callerKey{}, c)))
		case s.Link != nil:
			http.Error(w, "Open the link that muster ui has printed.", http.StatusUnauthorized)
		case len(s.Access.Tokens.Path) > 0 && r.Header.Get("Sec-Fetch-Mode") == "navigate":
			http.Redirect(w, r, loginPath, http.StatusSeeOther)
		default:
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, "Who asks is not known here: a token, or the proxy's word, is missing or wrong.",
				http.StatusUnauthorized)
		}
	})
}

// wholeBody reads a request's body before anybody answers: one that does not come, or does not end, holds nothing.
func wholeBody(w http.ResponseWriter, r *http.Request) bool {
	if r.ContentLength == 0 {
		return true
	}
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(patience)) // a recorder cannot
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, mostBody))
	if err != nil {
		w.Header().Set("Connection", "close")
		http.Error(w, "The body is longer than "+strconv.Itoa(mostBody)+" bytes, or does not come.",
			http.StatusRequestEntityTooLarge)
		return false
	}
	_ = control.SetReadDeadline(time.Time{}) // an answer may be a stream
	r.Body = io.NopCloser(bytes.NewReader(body))
	return true
}

// sameOrigin tells that a request comes from this server's own page: a browser says so, of every request that is more
// than a look.
func (s *Server) sameOrigin(r *http.Request) bool {
	scheme, _, ok := strings.Cut(s.base, "://")
	return ok && r.Header.Get("Origin") == scheme+"://"+r.Host // which is one of this server's names
}

// ownHost refuses requests for another host name: a page of a stranger whose name leads here would be this page's
// origin.
func (s *Server) ownHost(next http.Handler) http.Handler {
	names := []string{s.host}
	if host, port, err := net.SplitHostPort(s.host); err == nil && net.ParseIP(host).IsLoopback() {
		names = append(names, net.JoinHostPort("localhost", port))
	}
	return http.HandlerFunc(func(to http.ResponseWriter, r *http.Request) {
		w := patient{to, readerPatience}
		w.wait() // an answer may have no body
		if label, ok := s.pageOf(r.Host); ok {
			if r.ContentLength != 0 { // until it is known who asks
				_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(patience)) // fails when it is closed
			}
			s.pageHandler(w, r, label)
			return
		}
		if !slices.Contains(names, cmp.Or(r.Host, "none")) {
			http.Error(w, "This server answers as "+s.host+" only.", http.StatusMisdirectedRequest)
			return
		}
		if !wholeBody(w, r) {
			return
		}
		next.ServeHTTP(w, r)
	})
}
