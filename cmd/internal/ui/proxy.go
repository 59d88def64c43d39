package ui

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/cmd/internal/view"
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/gate"
	"github.com/muster-agent/muster/shim/status"
)

// A page that an app serves, such as a board, is shown through this server, and each at a host name of its own: the
// name is the page's origin, so that its scripts reach neither this server's page nor another app's. The link on the
// page leads to that name with a key, which a browser changes there for a cookie of that name alone.

const (
	openPath = "/.muster/open"
	// pageCookie begins the name of the cookie of each page.
	pageCookie = "muster_page"
	// mostPages bounds the pages that are known, and the browsers that may see them; the oldest are forgotten.
	mostPages = 1024
	// keyLife is for how long a key opens a page.
	keyLife = time.Minute
	// pageLife is for how long a browser sees a page until it opens the link again.
	pageLife = 12 * time.Hour
	// pageFresh is for how long the address of a page is taken as it was.
	pageFresh = 2 * time.Second
)

// page is an export of an instance.
type page struct{ app, instance, export string }

// label is its host name's first part. It is the same in every server, and says nothing.
func (p page) label() string {
	sum := sha256.Sum256([]byte(p.app + "\x00" + p.instance + "\x00" + p.export))
	return "p" + strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:]))[:31]
}

// pages are those that were opened.
type pages struct {
	mu    sync.Mutex
	known []knownPage
	open  []opening

	reach  sync.Once
	onward *http.Transport // to pages of apps
}

type knownPage struct {
	page
	at     time.Time // of the last look
	target target
}

// target is where a page is served: as its app names it, and the address that is dialled.
type target struct {
	*url.URL
	dial string // host:port
	// key is what the instance's agent asks for, before a program at the port inner of its loopback; empty: nothing
	key   string
	inner int
}

// opening is a browser that may see a page, by a key or by the cookie that it was changed for.
type opening struct {
	secret, label string
	used          bool // the key was changed for a cookie
	until         time.Time
	by            *http.Request // who has opened it, and still must be let in
}

func (p *pages) grant(one page, to target, by *http.Request, now time.Time) (key string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.known = slices.DeleteFunc(p.known, func(k knownPage) bool { return k.page == one })
	p.known = last(append(p.known, knownPage{page: one, at: now, target: to}))
	key = rand.Text()
	p.open = last(append(p.open, opening{secret: key, label: one.label(), until: now.Add(keyLife), by: by}))
	return key
}

func last[T any](all []T) []T { return all[max(0, len(all)-mostPages):] }

// exchange changes a key for a cookie, once.
func (p *pages) exchange(label, key string, now time.Time) (cookie string, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.open {
		if o := &p.open[i]; !o.used && o.label == label && equal(o.secret, key) && now.Before(o.until) {
			o.secret, o.used, o.until = rand.Text(), true, now.Add(pageLife)
			return o.secret, true
		}
	}
	return "", false
}

// of is the page of a host name, and who has opened it with this cookie; nil: nobody.
func (p *pages) of(label, cookie string, now time.Time) (known knownPage, by *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, k := range p.known {
		if k.label() == label {
			known = k
		}
	}
	for _, o := range p.open {
		if o.used && o.label == label && equal(o.secret, cookie) && now.Before(o.until) {
			by = o.by
		}
	}
	return known, by
}

// end has the browsers that meet a condition see no page any more.
func (p *pages) end(so func(by *http.Request) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open = slices.DeleteFunc(p.open, func(o opening) bool { return so(o.by) })
}

func (p *pages) found(one page, to target, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.known {
		if p.known[i].page == one {
			p.known[i].at, p.known[i].target = now, to
		}
	}
}

// pageHost is the host name of a page: below *.localhost, which browsers take for this host, or below AppsURL.
func (s *Server) pageHost(label string) (origin string, ok bool) {
	base := s.AppsURL
	if base == "" {
		_, port, err := net.SplitHostPort(s.host)
		if s.Link == nil || err != nil {
			return "", false
		}
		base = "http://*.localhost:" + port
	}
	return strings.Replace(base, "*", label, 1), true
}

// pageOf is the label of the page that a request's host is of.
func (s *Server) pageOf(host string) (label string, ok bool) {
	label, _, _ = strings.Cut(host, ".")
	origin, ok := s.pageHost(label)
	_, own, _ := strings.Cut(origin, "://")
	return label, ok && host == own && host != s.host
}

// exported is where a page is served: an export that is an http URL at a port of the instance's own. Any other address
// is the definition's word alone, and might be of something that only this host reaches.
func exported(v view.App, p page) (*url.URL, error) {
	i := slices.IndexFunc(v.Instances, func(in status.Instance) bool { return in.Instance == p.instance })
	if i < 0 {
		return nil, exit.With(exit.Usage, fmt.Errorf("%s has no instance %s: %w", p.app, p.instance, registry.ErrNoApp))
	}
	in := v.Instances[i]
	value, ok := in.Exports[p.export]
	if !ok {
		return nil, exit.With(exit.Usage, fmt.Errorf("%s/%s has no export %s: %w", p.app, p.instance, p.export,
			registry.ErrNoApp))
	}
	u, err := url.Parse(value)
	if err != nil || u.Scheme != "http" || u.User != nil {
		return nil, exit.Usagef("%s/%s: export %s is %s: want an http:// URL", p.app, p.instance, p.export, value)
	}
	for _, port := range in.Ports {
		if u.Hostname() == in.Host && u.Port() == strconv.Itoa(port) {
			return &url.URL{Scheme: "http", Host: u.Host, Path: cmp.Or(u.EscapedPath(), "/"), Fragment: u.Fragment}, nil
		}
	}
	return nil, exit.With(exit.Forbidden, fmt.Errorf("%s/%s: export %s is %s, which is no port of this instance at "+
		"%s: only these are shown here", p.app, p.instance, p.export, value, in.Host))
}

// targetNow looks a page's address up, and asks the one agent whose page it is. What runs on another host is dialled
// where its agent has answered with its key, and nowhere else: so an app's owner has this server reach nothing that
// the app itself does not.
func (s *Server) targetNow(ctx context.Context, p page) (to target, err error) {
	k, err := s.Lookup(p.app)
	if err != nil {
		return to, err
	}
	k.Warn = io.Discard
	facts, err := k.App(ctx, p.app)
	if err != nil {
		return to, err
	}
	at, err := facts.AskPeer(ctx, p.instance)
	if err != nil {
		return to, err
	}
	v := view.Of(facts)
	u, err := exported(v, p)
	if err != nil {
		return to, err
	}
	to = target{URL: u, dial: u.Host}
	of := locationOf(v, p.instance)
	if side := gate.Asks(of, u.String()); side != "" && facts.Registry != nil {
		to.inner = of.Ports[appdef.SideInnerPort(side)]
		if to.key, err = gate.Key(facts.Registry.App.Token, p.app, p.instance, side); err != nil {
			return to, err
		}
	}
	if at.IsValid() {
		to.dial = net.JoinHostPort(at.String(), u.Port())
	}
	return to, nil
}

func locationOf(v view.App, instance string) status.Location {
	for _, in := range v.Instances {
		if in.Instance == instance {
			return in.Location
		}
	}
	return status.Location{}
}

// openPage leads a browser to a page's own host name.
func (s *Server) openPage(w http.ResponseWriter, r *http.Request) {
	p := page{r.PathValue("app"), r.PathValue("instance"), r.PathValue("export")}
	to, err := s.targetNow(r.Context(), p)
	if err != nil {
		refuse(w, err)
		return
	}
	origin, ok := s.pageHost(p.label())
	if !ok {
		refuse(w, exit.With(exit.Forbidden, fmt.Errorf("%s: pages of apps are shown where muster ui has --apps-url, a "+
			"name for each; this one is at %s for who reaches it", p.app, to)))
		return
	}
	by := r.Clone(context.WithoutCancel(r.Context()))
	by.Body = http.NoBody
	key := s.pages.grant(p, to, by, time.Now())
	at := &url.URL{Path: to.Path}
	if rest := r.PathValue("path"); rest != "" {
		at.Path, at.RawQuery = "/"+rest, r.URL.RawQuery
	}
	query := url.Values{"key": {key}, "to": {at.String()}}
	http.Redirect(w, r, origin+openPath+"?"+query.Encode(), http.StatusSeeOther)
}

// pageHandler serves a page at its own host name.
func (s *Server) pageHandler(w http.ResponseWriter, r *http.Request, label string) {
	now := time.Now()
	if r.URL.Path == openPath {
		s.enterPage(w, r, label, now)
		return
	}
	secret := ""
	if c, err := r.Cookie(s.cookie(pageCookie)); err == nil {
		secret = c.Value
	}
	known, by := s.pages.of(label, secret, now)
	var who caller
	ok := false
	if by != nil {
		who, ok = s.whoAsks(by)
	}
	switch {
	case !ok && known.app != "" && r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Method == http.MethodGet:
		http.Redirect(w, r, s.base+"/apps/"+known.app+"/proxy/"+known.instance+"/"+known.export, http.StatusSeeOther)
		return
	case !ok:
		http.Error(w, "Open this page by its link at "+s.base, http.StatusForbidden)
		return
	}
	welcome(r)
	if err := s.mayPage(r, label, who); err != nil {
		http.Error(w, err.Error(), http.StatusForbidden)
		return
	}
	r, done := s.watched.add(r, by, s.stays(by, who))
	defer done()
	if now.Sub(known.at) > pageFresh {
		at, err := s.targetNow(r.Context(), known.page)
		if err != nil {
			refuse(w, err)
			return
		}
		known.target = at
		s.pages.found(known.page, at, now)
	}
	s.forward(w, r, label, known)
}

// enterPage changes a key for a cookie of this name alone.
func (s *Server) enterPage(w http.ResponseWriter, r *http.Request, label string, now time.Time) {
	cookie, ok := s.pages.exchange(label, r.URL.Query().Get("key"), now)
	if !ok || r.Method != http.MethodGet {
		http.Error(w, "This link has been used. Open the page by its link at "+s.base, http.StatusForbidden)
		return
	}
	to := r.URL.Query().Get("to")
	if u, err := url.Parse(to); err != nil || u.Scheme != "" || u.Host != "" || !strings.HasPrefix(u.Path, "/") ||
		strings.HasPrefix(to, "//") || strings.ContainsAny(to, "\\\r\n") {
		to = "/"
	}
	http.SetCookie(w, &http.Cookie{ // Lax: it was led here by this server's page, which is another site
		Name: s.cookie(pageCookie), Value: cookie, Path: "/", HttpOnly: true, SameSite: http.SameSiteLaxMode,
		Secure: s.secure(),
	})
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Referrer-Policy", "no-referrer")
	http.Redirect(w, r, to, http.StatusSeeOther)
}

// mayPage refuses what another page has a browser send, and from who may only look what is more than a look.
func (s *Server) mayPage(r *http.Request, label string, who caller) error {
	own, _ := s.pageHost(label)
	upgrade := r.Header.Get("Upgrade") != ""
	origin, site := r.Header.Get("Origin"), r.Header.Get("Sec-Fetch-Site")
	look := (r.Method == http.MethodGet || r.Method == http.MethodHead) && !upgrade
	switch {
	case origin != "" && origin != own, upgrade && origin == "":
		return fmt.Errorf("origin %q: only this page itself may ask here", origin)
	case site != "" && site != "same-origin" && site != "none" && (r.Header.Get("Sec-Fetch-Mode") != "navigate" ||
		!look || r.Header.Get("Sec-Fetch-Dest") != "document"): // nor in a frame
		return errors.New("another page may lead here, and not ask")
	case !look && !who.Act:
		return fmt.Errorf("%s may look at apps, and not act on them: a page that asks more than GET takes the right "+
			"to act", cmp.Or(who.Name, "this user"))
	}
	return nil
}

// forward passes a request on. The page sees no cookie of this server's, and itself at its own address.
func (s *Server) forward(w http.ResponseWriter, r *http.Request, label string, p knownPage) {
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{}) // an upload takes its time
	own, _ := s.pageHost(label)
	there := "http://" + p.target.Host
	proxy := httputil.ReverseProxy{
		Rewrite: func(to *httputil.ProxyRequest) {
			to.Out.URL.Scheme, to.Out.URL.Host, to.Out.Host = "http", p.target.dial, p.target.Host
			to.SetXForwarded()
			to.Out.Header.Set("X-Forwarded-Proto", own[:strings.Index(own, "://")])
			to.Out.Header.Set("X-Forwarded-Prefix", "/")
			if to.Out.Header.Get("Origin") != "" {
				to.Out.Header.Set("Origin", there)
			}
			if from, ok := strings.CutPrefix(to.Out.Header.Get("Referer"), own); ok {
				to.Out.Header.Set("Referer", there+from)
			}
			withoutCookies(to.Out)
			if p.target.key != "" {
				gate.Show(to.Out, p.target.inner, p.target.key)
			}
		},
		ModifyResponse: func(answer *http.Response) error {
			mend(answer.Header, there, own)
			return nil
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			http.Error(w, p.app+"/"+p.instance+" does not answer at "+there+": "+err.Error(), http.StatusBadGateway)
		},
		Transport: s.transport(), FlushInterval: -1,
		ErrorLog: log.New(io.Discard, "", 0), // ErrorHandler tells the browser
	}
	proxy.ServeHTTP(w, r)
}

// withoutCookies drops this server's own cookies.
func withoutCookies(r *http.Request) {
	all := r.Cookies()
	r.Header.Del("Cookie")
	for _, c := range all {
		if !ownCookie(c.Name) {
			r.AddCookie(c)
		}
	}
}

// mend keeps an answer's cookies to its own host name, and leads where the browser can follow.
func mend(h http.Header, there, own string) {
	cookies := h.Values("Set-Cookie")
	h.Del("Set-Cookie")
	for _, text := range cookies {
		c, err := http.ParseSetCookie(text)
		if err != nil || ownCookie(c.Name) {
			continue
		}
		c.Domain = ""
		h.Add("Set-Cookie", c.String())
	}
	if to, ok := strings.CutPrefix(h.Get("Location"), there); ok && (to == "" || to[0] == '/') {
		h.Set("Location", own+to)
	}
	for _, name := range []string{"Strict-Transport-Security", "Clear-Site-Data", "Alt-Svc"} {
		h.Del(name)
	}
}

// transport reaches instances. A page of a cluster reaches nothing of the host that it runs on.
func (s *Server) transport() *http.Transport {
	s.pages.reach.Do(func() {
		d := net.Dialer{Timeout: patience}
		if s.Link == nil {
			d.Control = func(_, address string, _ syscall.RawConn) error {
				at, err := netip.ParseAddrPort(address)
				if ip := at.Addr().Unmap(); err != nil || !ip.IsGlobalUnicast() {
					return fmt.Errorf("%s is no address of another host", address)
				}
				return nil
			}
		}
		s.pages.onward = &http.Transport{
			DialContext: d.DialContext, ResponseHeaderTimeout: time.Minute, IdleConnTimeout: idlePatience,
			MaxIdleConnsPerHost: 8, DisableCompression: true,
		}
	})
	return s.pages.onward
}
