package ui

import (
	"cmp"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"log"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/cmd/internal/apps"
	"github.com/muster-agent/muster/cmd/internal/logs"
	"github.com/muster-agent/muster/cmd/internal/seeds"
	"github.com/muster-agent/muster/cmd/internal/view"
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/journal/timeline"
	"github.com/muster-agent/muster/shim/samples"
	"github.com/muster-agent/muster/shim/status"
)

//go:embed web
var web embed.FS

//go:embed openapi.json
var openAPI []byte

// Server serves browsers, and programs that show a token.
type Server struct {
	// Lookup is where an app is looked for; "": all apps.
	Lookup func(app string) (apps.Lookup, error)
	// Link is told of each new one-time link; nil: there are none.
	Link func(url string)
	// Access lets others in.
	Access Access
	// URL is where browsers reach this server; "": http at the address that it listens at.
	URL string
	// AppsURL is where browsers reach pages of apps, such as https://*.apps.example.org, a name in place of * for each;
	// "": at *.localhost, and not at all where others reach this server.
	AppsURL string
	// Ended is what pages that are open at the end say from then on, of what they were told last, which is how things
	// stand at the end; "": a server that comes back, whose pages know of no end.
	Ended string
	// Log is told who acts, and when the file of tokens lets nobody in; nil: nobody is told.
	Log *slog.Logger

	base, host string // of URL: all of it, and host:port
	sessions   sessions
	feeds      feeds
	terminals  terminals
	watched    watched
	pages      pages
	looks      looks
}

// looks are those that callers share.
type looks struct {
	lists     shared[apps.Listing]
	kept      shared[[]samples.Table] // of runs whose agents have left
	jobs      shared[[]seeds.App]
	timelines shared[timeline.Timeline]
	facts     shared[apps.Facts]
}

// Serve answers at l until ctx is done.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	s.base = strings.TrimSuffix(cmp.Or(s.URL, "http://"+l.Addr().String()), "/")
	_, s.host, _ = strings.Cut(s.base, "://")
	s.feeds.look = s.look
	if s.Ended != "" {
		s.feeds.over = make(chan struct{})
	}
	s.announce()
	requests, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	server := &http.Server{
		Handler: s.handler(), ReadHeaderTimeout: patience, IdleTimeout: idlePatience, MaxHeaderBytes: mostHeader,
		ErrorLog:    log.New(io.Discard, "", 0), // strangers' broken handshakes
		BaseContext: func(net.Listener) context.Context { return requests },
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, connectionKey{}, c)
		},
	}
	go s.watched.watch(ctx)
	stop := context.AfterFunc(ctx, func() {
		s.conclude(requests)
		cut()
		_ = server.Close() // its answers are streams
	})
	defer stop()
	if err := server.Serve(status.Bounded(l, mostConnections)); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// conclude shows open pages how things stand at the end.
func (s *Server) conclude(ctx context.Context) {
	if s.Ended == "" || !s.feeds.followed() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, lastLook)
	defer cancel()
	s.looks.lists.renew()
	s.feeds.conclude(ctx)
	rest := time.NewTimer(lastAnswers)
	defer rest.Stop()
	<-rest.C
}

const (
	lastLook    = 5 * time.Second // for what open pages are shown at the end
	lastAnswers = time.Second     // and for what they ask for then
)

const (
	patience   = 10 * time.Second // for a request's head
	mostHeader = 16 << 10         // bytes
	// idlePatience is how long a connection without a request is kept.
	idlePatience    = time.Minute
	mostConnections = 4096
)

// connectionKey is where a request's context has its connection.
type connectionKey struct{}

// welcome notes that a request's connection has shown who asks: from here on strangers do not crowd it out.
func welcome(r *http.Request) {
	if one, ok := r.Context().Value(connectionKey{}).(interface{ Known() }); ok {
		one.Known()
	}
}

func (s *Server) announce() {
	if s.Link != nil {
		s.Link(s.base + loginPath + "?key=" + s.sessions.newLink())
	}
}

func (s *Server) handler() http.Handler {
	s.Access.Tokens.log = s.Log
	files, err := fs.Sub(web, "web")
	if err != nil {
		panic(err) // the folder is embedded
	}
	mux := http.NewServeMux()
	static := http.StripPrefix("/web/", http.FileServerFS(files))
	mux.Handle("GET /web/", static)
	page := func(w http.ResponseWriter, r *http.Request) { http.ServeFileFS(w, r, files, "index.html") }
	mux.HandleFunc("GET /{$}", page)
	mux.HandleFunc("GET /apps/{app}", page)
	mux.HandleFunc("GET /apps/{app}/runs/{run}", page)
	mux.HandleFunc("GET /api/v1/apps", s.apps)
	mux.HandleFunc("GET /api/v1/apps/{app}", s.app)
	mux.HandleFunc("GET /api/v1/apps/{app}/logs/{instance}/{stream}", s.logs)
	mux.HandleFunc("GET /api/v1/apps/{app}/timeline", s.timeline)
	mux.HandleFunc("GET /api/v1/apps/{app}/samples", s.samples)
	mux.HandleFunc("GET /metrics", s.metrics)
	mux.HandleFunc("GET /api/v1/live", s.live)
	mux.HandleFunc("GET /api/v1/apps/{app}/live", s.live)
	mux.HandleFunc("GET /api/v1/me", func(w http.ResponseWriter, r *http.Request) {
		s.answerValue(w, callerOf(r.Context()))
	})
	mux.HandleFunc("GET /api/v1/openapi.json", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(openAPI) // fails when the asker is gone
	})
	s.past(mux)
	s.acts(mux)
	s.onRegistry(mux)
	s.seeds(mux)
	mux.HandleFunc("GET /apps/{app}/proxy/{instance}/{export}", s.openPage)
	mux.HandleFunc("GET /apps/{app}/proxy/{instance}/{export}/{path...}", s.openPage)
	outer := http.NewServeMux()
	outer.HandleFunc("GET "+loginPath, s.login)
	outer.HandleFunc("POST "+loginPath, s.loginByToken)
	outer.HandleFunc("POST /logout", s.logout)
	outer.Handle("GET /web/page.css", static) // of the login too
	outer.Handle("GET /web/icon.svg", static)
	outer.Handle("/", s.guard(mux))
	return s.ownHost(harden(outer))
}

// harden has browsers load nothing from elsewhere and show the page in no other one.
func harden(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		// xterm.js writes style sheets of its own
		h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; "+
			"img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cache-Control", "no-store")
		next.ServeHTTP(w, r)
	})
}

// look reads what a feed shows: one app, or all of them. The page counts on from the start of what runs: with the
// seconds in it the list would change each second.
func (s *Server) look(ctx context.Context, app string) (any, error) {
	if app == "" {
		all, err := s.list(ctx)
		rows := slices.Clone(all.Apps)
		for i := range rows {
			if rows[i].Running() {
				rows[i].Seconds, rows[i].GPUSeconds, rows[i].CoreSeconds, rows[i].MBSeconds = nil, nil, nil, nil
			}
		}
		return apps.Listing{Version: 1, Apps: rows, Warnings: all.Warnings}, err
	}
	v, _, err := s.viewOf(ctx, app)
	return v, err
}

// viewOf is an app as its registry, this host and its agents tell of it, and what they told.
func (s *Server) viewOf(ctx context.Context, app string) (view.App, apps.Facts, error) {
	_, facts, err := s.factsOf(ctx, app)
	if err != nil {
		return view.App{}, facts, err
	}
	facts.AskPeers(ctx)
	return view.Of(facts), facts, nil
}

// list is the list of all apps, to be only read, and what is left out of it.
func (s *Server) list(ctx context.Context) (apps.Listing, error) {
	return s.looks.lists.get(ctx, "", func(ctx context.Context) (apps.Listing, error) {
		k, err := s.Lookup("")
		if err != nil {
			return apps.Listing{}, err
		}
		var warnings strings.Builder
		k.Warn = &warnings
		rows, err := k.List(ctx)
		return apps.Listing{Version: 1, Apps: rows, Warnings: slices.Collect(strings.Lines(warnings.String()))}, err
	})
}

func (s *Server) apps(w http.ResponseWriter, r *http.Request) {
	all, err := s.list(r.Context())
	if err != nil {
		refuse(w, err)
		return
	}
	s.answerValue(w, all)
}

// app answers one app. A feed, which all its followers share, has no keys of pages; this answer is of one caller.
func (s *Server) app(w http.ResponseWriter, r *http.Request) {
	v, facts, err := s.viewOf(r.Context(), r.PathValue("app"))
	if err != nil {
		refuse(w, err)
		return
	}
	if keysFor(r, v.Verdict) {
		v.ShowKeys(facts)
	}
	s.answerValue(w, v)
}

func (s *Server) answerValue(w http.ResponseWriter, value any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(value) // fails when the browser is gone
}

// refuse answers an error with its text.
func refuse(w http.ResponseWriter, err error) {
	refuseAs(w, statusOf(err), map[string]string{"error": err.Error()})
}

func refuseAs(w http.ResponseWriter, code int, why any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(why) // as above
}

// statusOf is the status of an answer that is an error.
func statusOf(err error) int {
	switch {
	case errors.Is(err, registry.ErrNoApp):
		return http.StatusNotFound
	case exit.CodeOf(err) == exit.Usage:
		return http.StatusBadRequest
	case errors.Is(err, registry.ErrForbidden) || exit.CodeOf(err) == exit.Forbidden:
		return http.StatusForbidden
	}
	return http.StatusBadGateway
}

// timeline answers what the events of an app tell of its run.
func (s *Server) timeline(w http.ResponseWriter, r *http.Request) {
	app := r.PathValue("app")
	said, err := s.looks.timelines.get(r.Context(), app, func(ctx context.Context) (timeline.Timeline, error) {
		return s.timelineOf(ctx, app)
	})
	if err != nil {
		refuse(w, err)
		return
	}
	s.answerValue(w, said)
}

func (s *Server) timelineOf(ctx context.Context, app string) (timeline.Timeline, error) {
	k, err := s.Lookup(app)
	if err == nil {
		err = exit.With(exit.Usage, appdef.CheckName("app", app))
	}
	if err != nil {
		return timeline.Timeline{}, err
	}
	k.Warn = io.Discard
	events := logs.Events{Lookup: k, Target: apps.Target{App: app}}
	lines, unreachable, err := events.Lines(ctx)
	if err != nil {
		return timeline.Timeline{}, err
	}
	said := timeline.Of(lines, time.Now())
	said.Unreachable = unreachable
	return said, nil
}

// logs streams an instance's log: its last lines (?tail=, 200 by default), and with ?follow=true what comes.
func (s *Server) logs(w http.ResponseWriter, r *http.Request) {
	app := r.PathValue("app")
	in, err := registry.ParseInstance(r.PathValue("instance"))
	if err == nil {
		err = appdef.CheckName("app", app)
	}
	stream := r.PathValue("stream")
	tail, tailErr := tailOf(r.URL.Query().Get("tail"))
	if stream != "stdout" && stream != "stderr" && stream != "agent" {
		err = errors.Join(err, exit.Usagef("stream %q: want stdout, stderr or agent", stream))
	}
	if err = errors.Join(err, tailErr); err != nil {
		refuse(w, exit.With(exit.Usage, err))
		return
	}
	k, err := s.Lookup(app)
	if err != nil {
		refuse(w, err)
		return
	}
	reader, end, err := logs.Anywhere(r.Context(), k, apps.Target{App: app, Instance: &in})
	if err != nil {
		refuse(w, err)
		return
	}
	defer end()
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	out := flusher{w}
	out.flush()
	reader.Tail, reader.Follow = tail, r.URL.Query().Get("follow") == "true"
	reader.Streams = []logs.Stream{{File: stream + ".log", Out: out, Mark: "|"}}
	if err := reader.One(r.Context(), in.String()); err != nil && r.Context().Err() == nil {
		_, _ = out.Write([]byte("muster: " + err.Error() + "\n")) // the answer has begun
	}
}

// readerPatience is how long a reader may take none of what it is sent.
const readerPatience = 30 * time.Second

// patient leaves a reader who takes nothing for a while: what is written comes in parts, each with a time of its own.
type patient struct {
	http.ResponseWriter
	each time.Duration
}

// mostPart is how many bytes a reader has to take in that time.
const mostPart = 64 << 10

// Unwrap is for http.ResponseController.
func (p patient) Unwrap() http.ResponseWriter { return p.ResponseWriter }

func (p patient) wait() {
	_ = http.NewResponseController(p.ResponseWriter).SetWriteDeadline(time.Now().Add(p.each)) // a recorder cannot
}

func (p patient) WriteHeader(code int) {
	p.wait()
	p.ResponseWriter.WriteHeader(code)
}

func (p patient) Write(b []byte) (n int, err error) {
	for part := range slices.Chunk(b, mostPart) {
		p.wait()
		done, err := p.ResponseWriter.Write(part)
		if n += done; err != nil {
			return n, err
		}
	}
	return n, nil
}

// flusher sends each part at once.
type flusher struct{ w http.ResponseWriter }

func (f flusher) Write(b []byte) (int, error) {
	n, err := f.w.Write(b)
	f.flush()
	return n, err
}

func (f flusher) flush() { _ = http.NewResponseController(f.w).Flush() } // a recorder cannot
