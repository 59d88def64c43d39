package ui

import (
	"crypto/rand"
	"crypto/subtle"
	"net"
	"net/http"
	"slices"
	"sync"
)

const (
	loginPath  = "/login"
	cookieName = "muster_ui"
	// mostSessions is how many browsers are known; the oldest is forgotten.
	mostSessions = 64
)

// sessions are the browsers that have opened a link.
type sessions struct {
	host string // host:port that the server listens at

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

// login opens a session for who shows the link's secret; the link is used up by it, and the next one announced.
func (s *Server) login(w http.ResponseWriter, r *http.Request) {
	session, ok := s.sessions.use(r.URL.Query().Get("key"))
	if !ok {
		http.Error(w, "This link has been used, or is another server's. Take the newest that muster ui has printed.",
			http.StatusForbidden)
		return
	}
	s.announce()
	http.SetCookie(w, &http.Cookie{
		Name: cookieName, Value: session, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode,
	})
	http.Redirect(w, r, "/", http.StatusSeeOther)
}

func (s *sessions) use(key string) (session string, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.link == "" || subtle.ConstantTimeCompare([]byte(key), []byte(s.link)) != 1 {
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
		return subtle.ConstantTimeCompare([]byte(one), []byte(session)) == 1
	})
}

// guard lets sessions through.
func (s *sessions) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		cookie, err := r.Cookie(cookieName)
		if err != nil || !s.has(cookie.Value) {
			http.Error(w, "Open the link that muster ui has printed.", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// ownHost refuses requests for another host name: a page of a stranger whose name leads here would be this page's
// origin.
func (s *sessions) ownHost(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, port, _ := net.SplitHostPort(s.host)
		if r.Host != s.host && r.Host != net.JoinHostPort("localhost", port) {
			http.Error(w, "This server answers as "+s.host+" only.", http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}
