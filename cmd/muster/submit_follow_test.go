package main

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/muster-agent/muster/cmd/internal/console"
	"github.com/muster-agent/muster/packages/fetch"
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/registry/consul"
	"github.com/muster-agent/muster/registry/embedded"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/launcher/job"
	"github.com/muster-agent/muster/shim/openapp"
	"github.com/muster-agent/muster/shim/submit"
)

// puppetJob is a job whose launcher says what a test has it say.
type puppetJob struct {
	state   job.State
	stopped int
	deaf    bool // to Stop
}

func (p *puppetJob) Start(context.Context) (string, error)    { return "7", nil }
func (p *puppetJob) State(context.Context) (job.State, error) { return p.state, nil }
func (p *puppetJob) Stop(context.Context) error {
	p.stopped++
	if p.deaf {
		return job.ErrUnreachable
	}
	return nil
}
func (p *puppetJob) Hints() (follow, end string) { return "look 7", "end 7" }

// waiting is somebody who waits for run r1 of d1, and brought it a file. The registry does not answer, or knows nobody.
func waiting(t *testing.T, launcher string, answers bool) (x *following, out *bytes.Buffer, object string) {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "r")
	address := registry.SocketAddress(socket)
	if answers {
		l, err := embedded.ListenUnix(socket)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- embedded.Serve(ctx, embedded.Options{Listener: l}) }()
		t.Cleanup(func() {
			cancel()
			if err := <-done; err != nil {
				t.Error(err)
			}
		})
	}
	root := t.TempDir()
	store, err := submit.Open(t.Context(), root, fetch.Options{})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "a.zip")
	if err := os.WriteFile(file, []byte("a"), 0o600); err != nil {
		t.Fatal(err)
	}
	o := submit.Object{Name: "a.zip", File: file}
	name, err := submit.NameOf(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	out = new(bytes.Buffer)
	r := &sent{
		flags: &submitFlags{}, streams: console.Streams{Out: out, Err: t.Output()}, launcher: launcher, job: &puppetJob{}, app: "d1", run: "r1", registry: address,
		cargo: &cargo{store: store, objects: []submit.Object{o}, names: []string{name}},
	}
	if err := r.cargo.hold(t.Context(), submit.Mark{App: "d1", Run: "r1"}); err != nil {
		t.Fatal(err)
	}
	x = &following{sent: r, watch: onlooker{lookup: r.lookup(), app: "d1", address: address, ours: r.ours, say: func(line string) { t.Log(line) }}}
	x.state = job.State{Word: "KILLED", Over: true}
	return x, out, filepath.Join(root, "objects", name)
}

// What was brought goes with the verdict, and stays for a run that may go on.
func TestWhatAnEndTakesAway(t *testing.T) {
	verdict := &registry.Verdict{Outcome: registry.Succeeded}
	second := &consul.Status{}
	second.App.Run = "r1-1"
	for _, tt := range []struct {
		name     string
		launcher string
		answers  bool
		st       *consul.Status
		code     int
		hbox     int
		says     string
		stays    bool
	}{
		{"a verdict", "yarn", false, &consul.Status{Verdict: verdict}, 0, 0, "d1: succeeded", false},
		{"a failure", "yarn", false, &consul.Status{Verdict: &registry.Verdict{Outcome: registry.Failed, Class: registry.ClassApp, Exit: &registry.MemberExit{Code: new(3)}}}, 3, 2, "d1: failed", false},
		{"interrupted", "yarn", false, &consul.Status{}, 143, 2, "d1: interrupted: yarn says KILLED; submitted again with --run r1 it goes on", true},
		{"interrupted, as a JobSet", "k8s", false, &consul.Status{}, 143, 2, "submitted again it begins as a new run", true},
		{"interrupted, as the launcher's second", "slurm", false, second, 143, 2, "submitted again with --run r1-1 it goes on", true},
		{"nobody came", "yarn", true, nil, 1, 1, "d1: no agent has joined: yarn says KILLED", false},
		{"nobody can tell", "yarn", false, nil, 1, 1, "does not answer: yarn says KILLED", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			x, out, object := waiting(t, tt.launcher, tt.answers)
			if x.watch.st = tt.st; tt.st != nil && tt.st.App.Run == "" {
				tt.st.App.Run = "r1"
			}
			err := x.end(t.Context())
			if got := exit.CodeOf(err); got != tt.code || !strings.Contains(out.String(), tt.says) {
				t.Errorf("got %d and %q, want %d and %q", got, out, tt.code, tt.says)
			}
			if got := exit.CodeOf(hboxCode(err)); got != tt.hbox {
				t.Errorf("got HBox's %d, want %d", got, tt.hbox)
			}
			if _, err := os.Stat(object); errors.Is(err, os.ErrNotExist) == tt.stays {
				t.Errorf("what was brought: got %v, want it to stay: %v", err, tt.stays)
			}
		})
	}
}

// A run that Ctrl-C has stopped is no success to whoever waited for it, as with muster run; one that somebody else has stopped is.
func TestStoppedByCtrlC(t *testing.T) {
	for _, tt := range []struct{ wishes, code, hbox int }{{0, 0, 0}, {1, 130, 2}, {2, 130, 2}} {
		x, out, object := waiting(t, "yarn", false)
		x.wishes, x.watch.st = tt.wishes, &consul.Status{Verdict: &registry.Verdict{Outcome: registry.Stopped, Class: registry.ClassStopped}}
		err := x.end(t.Context())
		if got, inHBox := exit.CodeOf(err), exit.CodeOf(hboxCode(err)); got != tt.code || inHBox != tt.hbox || !strings.HasPrefix(out.String(), "d1: stopped") {
			t.Errorf("after %d times Ctrl-C: got %d, %d in HBox's numbers, and %q, want %d and %d", tt.wishes, got, inHBox, out, tt.code, tt.hbox)
		}
		if _, err := os.Stat(object); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("what was brought for a run that is over: %v", err)
		}
	}
}

// A registry that is gone keeps agents alive in what was heard of it last: the launcher's word for the end counts in the end.
func TestWhoFollowsEnds(t *testing.T) {
	alive := &consul.Status{Live: 1, Verdict: &registry.Verdict{Outcome: registry.Succeeded}}
	for _, tt := range []struct {
		name       string
		st         *consul.Status
		heard      bool
		over, gone time.Duration // so long ago; 0: not
		done       bool
	}{
		{"nobody came", nil, true, 0, time.Second, true},
		{"the launcher is silent", nil, false, 0, 0, false},
		{"agents end", alive, true, 0, settled / 2, false},
		{"agents of which nothing is heard any more", alive, true, 0, 2 * settled, true},
		{"the launcher does not see the end", alive, false, 2 * settled, 0, true},
	} {
		x := &following{sent: &sent{}, st: tt.st, heard: tt.heard, state: job.State{Over: tt.heard}}
		if tt.over > 0 {
			x.over = time.Now().Add(-tt.over)
		}
		if tt.gone > 0 {
			x.gone = time.Now().Add(-tt.gone)
		}
		if got := x.done(); got != tt.done {
			t.Errorf("%s: got %v, want %v", tt.name, got, tt.done)
		}
	}
}

// Whoever leaves a job does not end it: in HBox's words, too, that is no failure of the job.
func TestWhoLeaves(t *testing.T) {
	x, _, object := waiting(t, "yarn", false)
	err := x.interrupt(t.Context())
	if got, inHBox := exit.CodeOf(err), exit.CodeOf(hboxCode(err)); got != 130 || inHBox != 130 {
		t.Errorf("got %d, and %d in HBox's numbers, want 130", got, inHBox)
	}
	if got := exit.CodeOf(hboxCode(exit.With(ctrlCCode, errors.New("interrupted")))); got != 130 {
		t.Errorf("before the start: got %d, want 130", got)
	}
	if _, err := os.Stat(object); err != nil {
		t.Error(err)
	}
}

// Ctrl-C that came while the job was started, and was heard of by nobody who starts it, is not lost: the job is ended, and what it
// was brought goes.
func TestCalledOffAsItBegins(t *testing.T) {
	x, _, object := waiting(t, "yarn", false)
	err := x.follow(t.Context(), func() bool { return false })
	if got, stopped := exit.CodeOf(err), x.job.(*puppetJob).stopped; got != 130 || stopped != 1 {
		t.Errorf("got %v, %d, stopped %d times, want 130 and the job ended", err, got, stopped)
	}
	if _, err := os.Stat(object); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("what was brought is still there: %v", err)
	}
}

// Where the launcher does not end a job it is asked again, and not with every look.
func TestAskedToEndAgain(t *testing.T) {
	x, _, _ := waiting(t, "nomad", false)
	puppet := x.job.(*puppetJob)
	puppet.deaf = true
	x.st, x.heard, x.state = &consul.Status{Verdict: &registry.Verdict{Outcome: registry.Succeeded}}, true, job.State{Word: "running"}
	x.over = time.Now().Add(-2 * settling)
	x.settle(t.Context())
	if (<-x.beside.then)(); puppet.stopped != 1 || x.ended {
		t.Errorf("asked %d times, ended: %v; want once, in vain", puppet.stopped, x.ended)
	}
	x.settle(t.Context())
	if x.beside.busy["stop"] {
		t.Error("asked again at once")
	}
	x.tried, puppet.deaf = time.Now().Add(-2*settling), false
	x.settle(t.Context())
	if (<-x.beside.then)(); puppet.stopped != 2 || !x.ended {
		t.Errorf("asked %d times, ended: %v; want it ended by the second", puppet.stopped, x.ended)
	}
}

// A launcher that starts agents again and again that are of no use is not waited for, unless they have joined meanwhile.
func TestFutileJobIsEnded(t *testing.T) {
	for _, tt := range []struct {
		name    string
		answers bool
		joined  *consul.Status
		stopped int
	}{{"nobody has joined", true, nil, 1}, {"somebody had", true, &consul.Status{Live: 1}, 0}, {"nobody can tell", false, nil, 0}} {
		x, _, _ := waiting(t, "nomad", tt.answers)
		x.watch.st, x.job.(*puppetJob).state = tt.joined, job.State{Word: "running", Futile: true}
		for range 2 {
			x.look(t.Context())
			x.beside.wg.Wait()
			for len(x.beside.then) > 0 {
				(<-x.beside.then)()
			}
		}
		x.settle(t.Context())
		x.beside.wg.Wait()
		if got := x.job.(*puppetJob).stopped; got != tt.stopped {
			t.Errorf("%s: asked %d times to end it, want %d", tt.name, got, tt.stopped)
		}
	}
}

// A package that is being fetched when Ctrl-C comes is waited for no longer.
func TestCalledOffWhileItIsFetched(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	begun := make(chan struct{})
	silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(begun)
		<-r.Context().Done()
	}))
	defer silent.Close()
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-begun
		cancel()
	}()
	a := openapp.Choices{}
	if _, _, err := a.Read(ctx, silent.URL+"/a.zip"); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want it broken off", err)
	}
}
