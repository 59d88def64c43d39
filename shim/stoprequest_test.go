package shim

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/data/manager"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/machine"
	"github.com/muster-agent/muster/shim/status"
)

// lifeline counts how often it was closed.
type lifeline struct {
	*io.PipeReader
	closed atomic.Int32
}

func (l *lifeline) Close() error {
	l.closed.Add(1)
	return l.PipeReader.Close()
}

func newLifeline() (*lifeline, *io.PipeWriter) {
	r, w := io.Pipe()
	return &lifeline{PipeReader: r}, w
}

// output is what an agent has written so far.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(b)
}

func (o *output) has(text string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return strings.Contains(o.text.String(), text)
}

// greet is a package of one instance.
func greet(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"metainfo.json":  `{"schemaVersion": "2.1", "application": {"name": "greet", "components": [{"name": "worker"}]}}`,
		"appConfig.json": `{"components": {"worker": {"muster.command": "true"}}}`,
		"resources.json": `{"components": {"worker": {"yarn.component.instances": "1", "yarn.role.priority": "1"}}}`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// options are those of an agent of greet whose registry is at HOST:PORT.
func options(t *testing.T, address string, to io.Writer) Options {
	t.Helper()
	at, err := registry.ParseAddress("consul://" + address)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	return Options{
		App: greet(t), Name: Name{AppID: "greet", Index: -1}, Launcher: "shell", Engine: "process", Host: "127.0.0.1",
		Folders:  Folders{Work: filepath.Join(dir, "work"), State: status.Dir(filepath.Join(dir, "state"))},
		Registry: Registry{Address: at}, Output: Output{To: to},
	}
}

// mute is a server that never answers. taken is closed when somebody has asked.
func mute(t *testing.T) (address string, taken <-chan struct{}) {
	t.Helper()
	asked, over := make(chan struct{}), make(chan struct{})
	var once sync.Once
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		once.Do(func() { close(asked) })
		select {
		case <-r.Context().Done():
		case <-over:
		}
	}))
	t.Cleanup(func() { close(over); server.CloseClientConnections(); server.Close() })
	return server.Listener.Addr().String(), asked
}

// A launcher that gives up early must not have to wait for a registry or a web server that does not answer.
func TestStopBeforeTheAgentHasJoined(t *testing.T) {
	for _, tt := range []struct {
		name string
		stop func(signals chan<- os.Signal, line *io.PipeWriter, cancel func())
		want int
		text string
	}{
		{"TERM", func(s chan<- os.Signal, _ *io.PipeWriter, _ func()) { s <- syscall.SIGTERM }, 143, "SIGTERM"},
		{"INT", func(s chan<- os.Signal, _ *io.PipeWriter, _ func()) { s <- os.Interrupt }, 130, "SIGINT"},
		{"lifeline", func(_ chan<- os.Signal, l *io.PipeWriter, _ func()) { _ = l.Close() }, 143, "started this agent"},
		{"context", func(_ chan<- os.Signal, _ *io.PipeWriter, cancel func()) { cancel() }, 143, "context"},
	} {
		for _, away := range []string{"registry", "app"} {
			t.Run(tt.name+" while the "+away+" is away", func(t *testing.T) {
				address, taken := mute(t)
				o := options(t, address, io.Discard)
				if away == "app" {
					o.App = "http://" + address + "/greet.zip"
				}
				signals := make(chan os.Signal, 1)
				line, end := newLifeline()
				o.Signals, o.Lifeline = signals, line
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				go func() { <-taken; tt.stop(signals, end, cancel) }()
				begun := time.Now()
				code, err := Run(ctx, o)
				if code != tt.want || err == nil || !strings.Contains(err.Error(), tt.text) {
					t.Errorf("got %d, %v, want %d and an error with %q", code, err, tt.want, tt.text)
				}
				if took := time.Since(begun); took > 5*time.Second {
					t.Errorf("it took %s", took)
				}
				if line.closed.Load() != 1 {
					t.Errorf("the lifeline was closed %d times", line.closed.Load())
				}
			})
		}
	}
}

// An agent that cannot be prepared leaves nothing: neither its connections to the registry nor its lifeline.
func TestNothingStaysOfAnAgentThatCannotBePrepared(t *testing.T) {
	var open sync.WaitGroup
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "Permission denied", http.StatusForbidden)
	}))
	server.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		switch s {
		case http.StateNew:
			open.Add(1)
		case http.StateClosed:
			open.Done()
		case http.StateActive, http.StateIdle, http.StateHijacked:
		}
	}
	server.Start()
	defer server.Close()
	o := options(t, server.Listener.Addr().String(), io.Discard)
	line, _ := newLifeline()
	o.Lifeline = line
	if code, err := Run(t.Context(), o); code != exit.Forbidden {
		t.Errorf("got %d, %v, want %d", code, err, exit.Forbidden)
	}
	if line.closed.Load() != 1 {
		t.Errorf("the lifeline was closed %d times", line.closed.Load())
	}
	closed := make(chan struct{})
	go func() { open.Wait(); close(closed) }()
	select {
	case <-closed:
	case <-time.After(5 * time.Second):
		t.Error("a connection to the registry stays open")
	}
}

// Whoever passes signals on may close the channel when no more will come.
func TestNoMoreSignals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		signals := make(chan os.Signal)
		requests := make(chan stopRequest, 1)
		l := listen(t.Context(), Options{Signals: signals}, func(r stopRequest) { requests <- r })
		signals <- syscall.SIGTERM
		if r := <-requests; r.signal != syscall.SIGTERM {
			t.Errorf("got %v", r)
		}
		close(signals)
		synctest.Wait() // all wait: nothing spins
		l.close()
	})
}

// What a request does changes when the machine has ended: then it takes no events any more.
func TestRequestAfterTheEnd(t *testing.T) {
	out := &output{}
	a := &agent{rooms: rooms{log: Output{}.logger(out), loop: machine.NewAgent()}}
	a.data = manager.New(t.Context(), manager.Config{})
	a.requestStop(stopRequest{signal: syscall.SIGTERM})
	if a.hurriedBy() != nil {
		t.Error("the machine has not ended")
	}
	a.loop.Use(machine.Rooms{Gang: idle{}, Stager: idle{}, Engine: idle{}, Checkpoints: idle{}, Logger: a.log})
	if final := a.loop.Run(t.Context()); !final.Phase.Final() {
		t.Fatalf("it is %s", final.Phase)
	}
	a.requestStop(stopRequest{syscall.SIGTERM, "the program that started this agent has ended"})
	if r := a.hurriedBy(); r == nil || r.code() != 143 {
		t.Errorf("got %v", r)
	}
	if !out.has("the program that started this agent has ended") {
		t.Error("the log does not say why")
	}
}

// idle is a room that does nothing.
type idle struct{}

func (idle) Do(context.Context, machine.Effect, machine.State) (machine.Event, bool) {
	return machine.Event{}, false
}

// The launcher's map of exit codes holds for an agent that ends before it has joined, too.
func TestEarlyEndIsMapped(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	codes := exit.Map{string(registry.ClassLauncher): 75, "65": 1}
	if code, err := endedEarly(ctx, codes, 65, io.ErrUnexpectedEOF); code != 1 || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("not asked to end: got %d, %v; want 1", code, err)
	}
	cancel(stopRequest{signal: syscall.SIGTERM})
	if code, err := endedEarly(ctx, codes, 65, io.ErrUnexpectedEOF); code != 75 || err == nil {
		t.Errorf("asked to end: got %d, %v; want 75", code, err)
	}
}
