package submit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/registry/consul"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/launcher/job"
	"github.com/muster-agent/muster/shim/launcher/known"
	"github.com/muster-agent/muster/shim/status"
	"github.com/muster-agent/muster/shim/store/schemes"
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

// puppetRegistry knows what a test has it know, and keeps whom it was asked for.
type puppetRegistry struct {
	silent   bool
	verdicts map[string]registry.Verdict // by run

	mu    sync.Mutex
	asked []string
}

func (p *puppetRegistry) Status(_ context.Context, app string) (consul.Status, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked = append(p.asked, app)
	if p.silent {
		return consul.Status{}, registry.ErrUnreachable
	}
	return consul.Status{}, registry.ErrNoApp
}

func (p *puppetRegistry) Verdict(_ context.Context, _, run string) (*registry.Verdict, error) {
	if v, ok := p.verdicts[run]; ok {
		return &v, nil
	}
	return nil, nil
}

func (p *puppetRegistry) Complete(context.Context, *consul.Status)        {}
func (p *puppetRegistry) Ask(context.Context, string, registry.Ask) error { return nil }
func (p *puppetRegistry) View(string, *consul.Status) View                { return View{} }
func (p *puppetRegistry) Error(err error) error                           { return err }
func (p *puppetRegistry) Agents(context.Context, string, []consul.MemberStatus, string) map[string]status.State {
	return nil
}

// waiting is a waiter for run r1 of d1, which has brought a file. The registry does not answer, or knows nobody.
func waiting(t *testing.T, launcher string, answers bool) (x *waiter, out *bytes.Buffer, file string) {
	t.Helper()
	root := t.TempDir()
	store, err := openStore(t.Context(), root, schemes.Local())
	if err != nil {
		t.Fatal(err)
	}
	l, ok := known.Find(launcher)
	if !ok {
		t.Fatal(launcher)
	}
	out = new(bytes.Buffer)
	o := &Options{Job: Job{Launcher: l}, Registry: &puppetRegistry{silent: !answers}, Out: out, Err: t.Output()}
	o.File.AppID, o.File.Run = "d1", "r1"
	a, err := bring(t.Context(), store, t.TempDir(), "r1", "a")
	if err != nil {
		t.Fatal(err)
	}
	s := &submission{Options: o, client: &puppetJob{}, artifacts: a}
	x = &waiter{submission: s, watch: watcher{registry: o.Registry, app: "d1", ours: s.ours, print: func(line string) { fmt.Fprintln(out, line) }}}
	x.state = job.State{Word: "KILLED", Over: true}
	return x, out, a.folder.Path(a.names[0])
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
		nobody   bool
		says     string
		stays    bool
		on       bool // the launcher has not said that the job ended
	}{
		{"a verdict", "yarn", false, &consul.Status{Verdict: verdict}, 0, false, "d1: succeeded", false, false},
		{"a verdict of a job that goes on", "yarn", false, &consul.Status{Verdict: verdict}, 0, false, "d1: succeeded", true, true},
		{"a failure", "yarn", false, &consul.Status{Verdict: &registry.Verdict{Outcome: registry.Failed, Class: registry.ClassApp, Exit: &registry.MemberExit{Code: new(3)}}}, 3, false, "d1: failed", false, false},
		{"a failure's last output", "nomad", false, &consul.Status{Verdict: &registry.Verdict{Outcome: registry.Failed, Class: registry.ClassApp, First: "worker-1", Exit: &registry.MemberExit{Code: new(1), LastOutput: "Traceback:\nValueError"}}}, 1, false, "last output of worker-1:\n  Traceback:\n  ValueError\n", false, false},
		{"interrupted", "yarn", false, &consul.Status{}, 143, false, "d1: interrupted: yarn says KILLED; submitted again with --run r1 it goes on", true, false},
		{"interrupted, as a JobSet", "k8s", false, &consul.Status{}, 143, false, "submitted again it begins as a new run", true, false},
		{"interrupted, as the launcher's second", "slurm", false, second, 143, false, "submitted again with --run r1-1 it goes on", true, false},
		{"nobody came", "yarn", true, nil, 1, true, "d1: no agent has joined: yarn says KILLED", false, false},
		{"nobody can tell", "yarn", false, nil, 1, true, "does not answer: yarn says KILLED", true, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			x, out, file := waiting(t, tt.launcher, tt.answers)
			x.state.Over = !tt.on
			if x.watch.st = tt.st; tt.st != nil && tt.st.App.Run == "" {
				tt.st.App.Run = "r1"
			}
			err := x.end(t.Context())
			if got := exit.CodeOf(err); got != tt.code || !strings.Contains(out.String(), tt.says) {
				t.Errorf("got %d and %q, want %d and %q", got, out, tt.code, tt.says)
			}
			if errors.Is(err, ErrNobody) != tt.nobody {
				t.Errorf("got %v, nobody joined: want %v", err, tt.nobody)
			}
			if _, err := os.Stat(file); errors.Is(err, os.ErrNotExist) == tt.stays {
				t.Errorf("what was brought: got %v, want it to stay: %v", err, tt.stays)
			}
		})
	}
}

// A run that Ctrl-C has stopped is no success to whoever waited for it, as with muster run; one that somebody else has stopped is.
func TestStoppedByCtrlC(t *testing.T) {
	for _, tt := range []struct{ interrupts, code int }{{0, 0}, {1, 130}, {2, 130}} {
		x, out, file := waiting(t, "yarn", false)
		x.interrupts, x.watch.st = tt.interrupts, &consul.Status{Verdict: &registry.Verdict{Outcome: registry.Stopped, Class: registry.ClassStopped}}
		err := x.end(t.Context())
		if got := exit.CodeOf(err); got != tt.code || !strings.HasSuffix(out.String(), "\nd1: stopped\n") {
			t.Errorf("after %d times Ctrl-C: got %d and %q, want %d", tt.interrupts, got, out, tt.code)
		}
		if _, err := os.Stat(file); !errors.Is(err, os.ErrNotExist) {
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
		{"agents end", alive, true, 0, endPatience / 2, false},
		{"agents of which nothing is heard any more", alive, true, 0, 2 * endPatience, true},
		{"the launcher does not see the end", alive, false, 2 * endPatience, 0, true},
	} {
		x := &waiter{submission: &submission{}, st: tt.st, heard: tt.heard, state: job.State{Over: tt.heard}}
		if tt.over > 0 {
			x.runOver = time.Now().Add(-tt.over)
		}
		if tt.gone > 0 {
			x.jobOver = time.Now().Add(-tt.gone)
		}
		if got := x.done(); got != tt.done {
			t.Errorf("%s: got %v, want %v", tt.name, got, tt.done)
		}
	}
}

// Whoever leaves a job does not end it: in HBox's words, too, that is no failure of the job.
func TestWhoLeaves(t *testing.T) {
	x, _, file := waiting(t, "yarn", false)
	err := x.interrupt(t.Context())
	if got := exit.CodeOf(err); got != 130 || !errors.Is(err, ErrLeft) {
		t.Errorf("got %v, want to have left with 130", err)
	}
	if _, err := os.Stat(file); err != nil {
		t.Error(err)
	}
}

// Ctrl-C that came while the job was started, and was heard of by nobody who starts it, is not lost: the job is ended, and what it
// was brought goes.
func TestCalledOffAsItBegins(t *testing.T) {
	x, _, file := waiting(t, "yarn", false)
	err := x.wait(t.Context(), func() bool { return false })
	if got, stopped := exit.CodeOf(err), x.client.(*puppetJob).stopped; got != 130 || stopped != 1 {
		t.Errorf("got %v, %d, stopped %d times, want 130 and the job ended", err, got, stopped)
	}
	if _, err := os.Stat(file); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("what was brought is still there: %v", err)
	}
}

// Where the launcher does not end a job it is asked again, and not with every look.
func TestAskedToEndAgain(t *testing.T) {
	x, _, _ := waiting(t, "nomad", false)
	puppet := x.client.(*puppetJob)
	puppet.deaf = true
	x.st, x.heard, x.state = &consul.Status{Verdict: &registry.Verdict{Outcome: registry.Succeeded}}, true, job.State{Word: "running"}
	x.runOver = time.Now().Add(-2 * endGrace)
	x.decide(t.Context())
	if (<-x.tasks.then)(); puppet.stopped != 1 || x.ending {
		t.Errorf("asked %d times, ended: %v; want once, in vain", puppet.stopped, x.ending)
	}
	x.decide(t.Context())
	if x.tasks.busy["stop"] {
		t.Error("asked again at once")
	}
	x.asked, puppet.deaf = time.Now().Add(-2*endGrace), false
	x.decide(t.Context())
	if (<-x.tasks.then)(); puppet.stopped != 2 || !x.ending {
		t.Errorf("asked %d times, ended: %v; want it ended by the second", puppet.stopped, x.ending)
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
		x.watch.st, x.client.(*puppetJob).state = tt.joined, job.State{Word: "running", Futile: true}
		for range 2 {
			x.look(t.Context())
			x.tasks.wg.Wait()
			for len(x.tasks.then) > 0 {
				(<-x.tasks.then)()
			}
		}
		x.decide(t.Context())
		x.tasks.wg.Wait()
		if got := x.client.(*puppetJob).stopped; got != tt.stopped {
			t.Errorf("%s: asked %d times to end it, want %d", tt.name, got, tt.stopped)
		}
	}
}
