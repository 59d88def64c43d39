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
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	loginPath  = "/login"
	cookieName = "muster_ui"
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

func (s *Server) keep(w http.ResponseWriter, secret string) {
	http.SetCookie(w, &http.Cookie{
		Name: cookieName, Value: secret, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode,
		Secure: strings.HasPrefix(s.base, "https:"),
	})
}

// logout has a browser forget what proves who it is.
func (s *Server) logout(w http.ResponseWriter, _ *http.Request) {
	http.SetCookie(w, &http.Cookie{Name: cookieName, Path: "/", MaxAge: -1, HttpOnly: true})
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
	cookie, err := r.Cookie(cookieName)
	if err != nil {
		return caller{}, false
	}
	if s.sessions.has(cookie.Value) { // the user who has started this server
		return caller{Act: true, browser: true}, true
	}
	c, ok = s.Access.tokenOf(cookie.Value)
	c.browser = true
	return c, ok
}

// guard lets those through who may look.
func (s *Server) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, ok := s.whoAsks(r)
		switch {
		case ok:
			welcome(r)
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
	origin, err := url.Parse(r.Header.Get("Origin"))
	return err == nil && origin.Host != "" && origin.Host == r.Host
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
