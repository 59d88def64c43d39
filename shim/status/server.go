package status

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/muster-agent/muster/shim/samples"
	"github.com/muster-agent/muster/shim/tail"
)

// Source is the agent that an API speaks for.
type Source struct {
	State  func() State
	Signal func(number int) error
	Stop   func(grace *time.Duration) error
	// Hold keeps the container of a failed process for so long from now on; 0 releases it.
	Hold func(keep time.Duration) error
	// Adopt writes the app's data again into a registry that has lost it.
	Adopt func(context.Context) (Adopted, error)
	// Silence answers a peer that asks for how long the registry has not answered.
	Silence func() Silence
	// Roster answers a peer of that rank with the packed roster, or with the address of the agent to ask instead. The
	// error is registry.ErrNotYet where this agent does not have it yet.
	Roster func(ctx context.Context, id string, rank int) (packed []byte, next string, err error)
	// Samples are what the instance used after a second of Unix time.
	Samples func(since int64) samples.Table
	// Metrics writes what the agent knows of its instance, in a form of MetricsType.
	Metrics     func(context.Context, io.Writer) error
	MetricsType string
	// View is the app as Slider's REST shows it, with the values that this agent has.
	View func(context.Context) (any, error)
	// Exec runs a program beside the app; the context bounds its start only.
	Exec func(context.Context, ExecRequest) (Execution, error)
	// Command runs a command of the package's scripts until its end.
	Command func(context.Context, string) (CommandResult, error)
	// Redeem uses up the grant of a caller on another host; the error is registry.ErrNoGrant if there is none.
	Redeem func(ctx context.Context, grant string) error
	// Peers are those that programs may be started in; nil: none.
	Peers  *Peers
	LogDir string
}

// Silence is the answer of GET /v1/peer/silence.
type Silence struct {
	Instance string  `json:"instance"`
	Inc      string  `json:"inc"`
	Gen      int     `json:"gen"`
	Silence  float64 `json:"silence"` // seconds
	Fenced   bool    `json:"fenced"`  // it has stopped its process, or is stopping it
}

// failure is the body of every error answer.
type failure struct {
	Error string `json:"error"`
	Hint  string `json:"hint"`
	Code  int    `json:"code,omitempty"` // the exit code of a verb that a page refuses
}

// ErrAnswered refuses a socket at which another agent answers.
var ErrAnswered = errors.New("another agent answers there")

// Listen takes the socket, 0600, in place of one that a dead agent left.
func Listen(path string) (net.Listener, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	if c, err := net.Dial("unix", path); err == nil {
		return nil, errors.Join(fmt.Errorf("listen %s: %w", path, ErrAnswered), c.Close())
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("listen: %w", err)
	}
	if len(path) > MaxSocket {
		return nil, fmt.Errorf("listen %s: %d bytes, a socket's path has at most %d; give --state-dir a shorter folder",
			path, len(path), MaxSocket)
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(fmt.Errorf("listen: %w", err), l.Close())
	}
	return l, nil
}

// The routes that the local API and that for other hosts have in common.
const (
	logsRoute    = "GET /v1/logs/{name}" // as logFile knows them
	signalRoute  = "POST /v1/signal"
	execRoute    = "POST /v1/exec"
	commandRoute = "POST /v1/command"
	holdRoute    = "POST /v1/hold"
)

// Handler is the agent's API.
func Handler(s Source) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/state", func(w http.ResponseWriter, _ *http.Request) { answer(w, s.State()) })
	mux.HandleFunc(silenceRoute, func(w http.ResponseWriter, _ *http.Request) { answer(w, s.Silence()) })
	mux.HandleFunc(logsRoute, s.logs)
	mux.HandleFunc(samplesRoute, s.samples)
	mux.HandleFunc(metricsRoute, s.metrics)
	mux.HandleFunc("GET /v1/view", s.view)
	mux.HandleFunc(signalRoute, s.signal)
	mux.HandleFunc("POST /v1/stop", s.stop)
	mux.HandleFunc("POST /v1/adopt", s.adopt)
	mux.HandleFunc(execRoute, s.exec)
	mux.HandleFunc(peerRoute, s.peerExec)
	mux.HandleFunc(commandRoute, s.command)
	mux.HandleFunc(holdRoute, s.hold)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		notFound(w, r, "GET /v1/state, /v1/samples, /v1/metrics, /v1/view, "+
			"/v1/logs/{stdout|stderr|agent|events|side-NAME.stdout}; "+
			"POST /v1/signal, /v1/stop, /v1/adopt, /v1/exec, /v1/command, /v1/hold")
	})
	return mux
}

// Serve answers until ctx is done; what was asked before is still answered. The process, which may ask too, must leave
// the agent its descriptors: of each user so many connections stay, the newest.
func Serve(ctx context.Context, l net.Listener, h http.Handler) error {
	server := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second}
	return serveWith(ctx, server, newConnections(l, budget(mostConnections, 2)))
}

func serveWith(ctx context.Context, server *http.Server, l net.Listener) error {
	server.BaseContext = func(net.Listener) context.Context { return ctx }
	down := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(down)
		// Requests that follow a log end with ctx; the others get their answer.
		patience, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastAnswers)
		defer cancel()
		if server.Shutdown(patience) != nil {
			_ = server.Close() // some were not answered in time
		}
	})
	err := server.Serve(l)
	if !stop() { // ctx is done: Serve returns before the answers are out
		<-down
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// lastAnswers bounds how long an agent that ends goes on answering.
const lastAnswers = time.Second

func (s Source) signal(w http.ResponseWriter, r *http.Request) {
	var ask struct {
		Signal string `json:"signal"`
	}
	if !decode(w, r, &ask) {
		return
	}
	n, err := ParseSignal(ask.Signal)
	if err != nil {
		refuse(w, http.StatusBadRequest, err.Error(), "a name such as TERM, KILL, USR1, or a number")
		return
	}
	if err := s.Signal(n); err != nil {
		refuse(w, http.StatusConflict, err.Error(), "GET /v1/state says what the instance is doing")
		return
	}
	answer(w, struct{}{})
}

// MostHold is for how long a container may be kept.
const MostHold = 30 * 24 * time.Hour

// HoldFor is for how long a container is to be kept from now on, of what was asked for in seconds; 0 releases it.
func HoldFor(seconds *float64) (time.Duration, error) {
	if seconds == nil || !(*seconds == 0 || *seconds >= 1 && *seconds <= MostHold.Seconds()) {
		return 0, fmt.Errorf("want for, in seconds from now on, from 1 up to %d (30 days); 0 releases the container",
			int(MostHold.Seconds()))
	}
	return time.Duration(*seconds * float64(time.Second)), nil
}

func (s Source) hold(w http.ResponseWriter, r *http.Request) {
	var ask struct {
		For *float64 `json:"for"` // seconds from now on; 0: release it
	}
	if !decode(w, r, &ask) {
		return
	}
	keep, err := HoldFor(ask.For)
	if err != nil {
		refuse(w, http.StatusBadRequest, err.Error(), "")
		return
	}
	if err := s.Hold(keep); err != nil {
		refuse(w, http.StatusConflict, err.Error(), "")
		return
	}
	answer(w, struct{}{})
}

// mostGrace bounds what a caller may ask for, in seconds.
const mostGrace = 24 * 60 * 60

func (s Source) stop(w http.ResponseWriter, r *http.Request) {
	var ask struct {
		Grace *float64 `json:"grace"`
	}
	if !decode(w, r, &ask) {
		return
	}
	var grace *time.Duration
	if ask.Grace != nil {
		if *ask.Grace < 0 || *ask.Grace > mostGrace {
			got := strconv.FormatFloat(*ask.Grace, 'f', -1, 64)
			refuse(w, http.StatusBadRequest, "grace "+got, "seconds, from 0 to a day")
			return
		}
		d := time.Duration(*ask.Grace * float64(time.Second))
		grace = &d
	}
	if err := s.Stop(grace); err != nil {
		refuse(w, http.StatusConflict, err.Error(), "")
		return
	}
	answer(w, struct{}{})
}

func (s Source) view(w http.ResponseWriter, r *http.Request) {
	v, err := s.View(r.Context())
	if err != nil {
		refuse(w, http.StatusServiceUnavailable, err.Error(), "the registry cannot be read: ask again")
		return
	}
	answer(w, v)
}

// logs sends a log from an offset of its newest file on, or with tail its last lines over all rotated files (-1: all of
// them); with follow until the caller hangs up.
func (s Source) logs(w http.ResponseWriter, r *http.Request) { s.sendLog(w, r, 0) }

// peerLogs is logs for a caller on another host, who must take each part within knownPatience.
func (s Source) peerLogs(w http.ResponseWriter, r *http.Request) {
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{}) // it says no more; a log may be silent for hours
	s.sendLog(w, r, knownPatience)
}

// logFile is where a log of that name stands in the log folder. A side process's begins with SidePrefix and is below no
// other folder, whatever it is called.
func logFile(name string) (file string, known bool) {
	switch name {
	case "stdout", "stderr", "agent":
		return name + ".log", true
	case "events":
		return "events.jsonl", true
	}
	side := strings.HasPrefix(name, SidePrefix) && !strings.ContainsAny(name, "/\x00") &&
		(strings.HasSuffix(name, ".stdout") || strings.HasSuffix(name, ".stderr"))
	return name + ".log", side
}

// SidePrefix begins the names of a side process's logs: side-NAME.stdout.log.
const SidePrefix = "side-"

func (s Source) sendLog(w http.ResponseWriter, r *http.Request, patience time.Duration) {
	name := r.PathValue("name")
	file, ok := logFile(name)
	if !ok {
		const hint = "stdout, stderr, agent, events, or side-NAME.stdout, side-NAME.stderr"
		refuse(w, http.StatusNotFound, "no log "+strconv.Quote(name), hint)
		return
	}
	query := r.URL.Query()
	path := filepath.Join(s.LogDir, file)
	offset, err := strconv.ParseInt(cmp.Or(query.Get("offset"), "0"), 10, 64)
	if err != nil || offset < 0 {
		text := "offset " + strconv.Quote(query.Get("offset")) + " is no position"
		refuse(w, http.StatusBadRequest, text, "a number of bytes from 0")
		return
	}
	parts := maps.All(map[string]int64{path: offset})
	q := LogQuery{Tail: -1, Follow: query.Get("follow") == "true" || query.Get("follow") == "1"}
	if query.Has("tail") {
		if q.Tail, err = strconv.Atoi(query.Get("tail")); err != nil || q.Tail < -1 {
			text := "tail " + strconv.Quote(query.Get("tail"))
			refuse(w, http.StatusBadRequest, text, "a number of lines, or -1 for all")
			return
		}
		parts = tail.Parts(path, q.Tail)
	}
	if query.Has("since") {
		if q.Since, err = time.Parse(time.RFC3339Nano, query.Get("since")); err != nil {
			refuse(w, http.StatusBadRequest, "since "+strconv.Quote(query.Get("since")), "a time of RFC 3339")
			return
		}
	}
	timed := query.Get("times") == "true"
	w.Header().Set("Content-Type", "application/octet-stream")
	if timed {
		w.Header().Set("Content-Type", linesType)
	}
	out := &flusher{w: w, patience: patience}
	if q.Follow {
		out.flush() // the follower of an empty log must see at once that it is connected
	}
	if timed {
		err = q.send(r.Context(), path, out)
	} else {
		err = sendParts(r.Context(), parts, path, q.Follow, out)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) && r.Context().Err() == nil && !out.begun {
		refuse(w, http.StatusInternalServerError, err.Error(), "")
	}
}

// sendParts sends the bytes of a log.
func sendParts(ctx context.Context, parts iter.Seq2[string, int64], path string, follow bool, out io.Writer) error {
	for part, from := range parts {
		err := Follow(ctx, part, from, follow && part == path, out)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// flusher sends each part at once. An answer that has begun as a log cannot become an error.
type flusher struct {
	w        http.ResponseWriter
	patience time.Duration // for each part; 0: no limit
	begun    bool
}

func (f *flusher) Write(b []byte) (int, error) {
	if f.patience > 0 {
		_ = http.NewResponseController(f.w).SetWriteDeadline(time.Now().Add(f.patience)) // fails when it is closed
	}
	n, err := f.w.Write(b)
	f.flush()
	return n, err
}

func (f *flusher) flush() {
	f.begun = true
	_ = http.NewResponseController(f.w).Flush() // a recorder cannot flush
}

func decode(w http.ResponseWriter, r *http.Request, into any) bool {
	err := json.NewDecoder(io.LimitReader(r.Body, 1<<16)).Decode(into)
	if err != nil && !errors.Is(err, io.EOF) {
		refuse(w, http.StatusBadRequest, "body: "+err.Error(), "a JSON object")
		return false
	}
	return true
}

func answer(w http.ResponseWriter, value any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(value) // fails when the caller has hung up
}

// notFound names the routes that there are.
func notFound(w http.ResponseWriter, r *http.Request, routes string) {
	refuse(w, http.StatusNotFound, r.Method+" "+r.URL.Path+" is not here", routes)
}

func refuse(w http.ResponseWriter, status int, text, hint string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(failure{Error: text, Hint: hint}) // fails when the caller has hung up
}
