package ui

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"io/fs"
	"net"
	"net/http"
	"time"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/cmd/internal/apps"
	"github.com/muster-agent/muster/cmd/internal/logs"
	"github.com/muster-agent/muster/cmd/internal/view"
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/exit"
)

//go:embed web
var web embed.FS

// Server serves one user's browser.
type Server struct {
	// Lookup is where an app is looked for; "": all apps.
	Lookup func(app string) (apps.Lookup, error)
	// Link is told of each new one-time link.
	Link func(url string)

	sessions sessions
	feeds    feeds
}

// Serve answers at l until ctx is done.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	s.sessions.host = l.Addr().String()
	s.feeds.look = s.look
	s.announce()
	server := &http.Server{
		Handler: s.handler(), ReadHeaderTimeout: patience, MaxHeaderBytes: mostHeader,
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() }) // its answers are streams
	defer stop()
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

const (
	patience   = 10 * time.Second // for a request's head
	mostHeader = 16 << 10         // bytes
)

func (s *Server) announce() {
	s.Link("http://" + s.sessions.host + loginPath + "?key=" + s.sessions.newLink())
}

func (s *Server) handler() http.Handler {
	files, err := fs.Sub(web, "web")
	if err != nil {
		panic(err) // the folder is embedded
	}
	mux := http.NewServeMux()
	mux.Handle("GET /web/", http.StripPrefix("/web/", http.FileServerFS(files)))
	page := func(w http.ResponseWriter, r *http.Request) { http.ServeFileFS(w, r, files, "index.html") }
	mux.HandleFunc("GET /{$}", page)
	mux.HandleFunc("GET /apps/{app}", page)
	mux.HandleFunc("GET /api/v1/apps", s.apps)
	mux.HandleFunc("GET /api/v1/apps/{app}", s.app)
	mux.HandleFunc("GET /api/v1/apps/{app}/logs/{instance}/{stream}", s.logs)
	mux.HandleFunc("GET /api/v1/live", s.live)
	mux.HandleFunc("GET /api/v1/apps/{app}/live", s.live)
	outer := http.NewServeMux()
	outer.HandleFunc("GET "+loginPath, s.login)
	outer.Handle("/", s.sessions.guard(mux))
	return s.sessions.ownHost(harden(outer))
}

// harden has browsers load nothing from elsewhere and show the page in no other one.
func harden(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "+
			"connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cache-Control", "no-store")
		next.ServeHTTP(w, r)
	})
}

// look reads what a feed shows: one app, or all of them.
func (s *Server) look(ctx context.Context, app string) (any, error) {
	k, err := s.Lookup(app)
	if err != nil {
		return nil, err
	}
	if app == "" {
		rows, err := k.List(ctx)
		for i := range rows {
			if rows[i].Running() { // the page counts on from the start: else the list would change each second
				rows[i].Seconds = nil
			}
		}
		return apps.Listing{Version: 1, Apps: rows}, err
	}
	facts, err := k.App(ctx, app)
	if err != nil {
		return nil, err
	}
	if facts.Local == nil && facts.Registry == nil {
		return nil, k.UnknownApp(app, registry.Address{})
	}
	facts.AskPeers(ctx)
	return view.Of(facts), nil
}

func (s *Server) apps(w http.ResponseWriter, r *http.Request) { s.answer(w, r, "") }

func (s *Server) app(w http.ResponseWriter, r *http.Request) { s.answer(w, r, r.PathValue("app")) }

func (s *Server) answer(w http.ResponseWriter, r *http.Request, app string) {
	value, err := s.look(r.Context(), app)
	if err != nil {
		refuse(w, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(value) // fails when the browser is gone
}

// refuse answers an error with its text.
func refuse(w http.ResponseWriter, err error) {
	code := http.StatusBadGateway
	switch {
	case errors.Is(err, registry.ErrNoApp):
		code = http.StatusNotFound
	case exit.CodeOf(err) == exit.Usage:
		code = http.StatusBadRequest
	case errors.Is(err, registry.ErrForbidden):
		code = http.StatusForbidden
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(map[string]string{"error": err.Error()}) // as above
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

// flusher sends each part at once.
type flusher struct{ w http.ResponseWriter }

func (f flusher) Write(b []byte) (int, error) {
	n, err := f.w.Write(b)
	f.flush()
	return n, err
}

func (f flusher) flush() { _ = http.NewResponseController(f.w).Flush() } // a recorder cannot
