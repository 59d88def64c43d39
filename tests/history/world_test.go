package history

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/muster-agent/muster/tests/child"
	"github.com/muster-agent/muster/tests/folder"
	"github.com/muster-agent/muster/tests/need"
	"github.com/muster-agent/muster/tests/netns"
	"github.com/muster-agent/muster/tests/servers/consulserver"
)

// serverCount is how many Consul servers there are, on the first hosts of the network.
const serverCount = 3

// options are what a test wishes.
type options struct {
	agents      int           // how many, in gangs of 3 to 10
	hosts       int           // on which agents run
	faults      []string      // kinds of the schedule
	length      time.Duration // how long faults are made
	pace        time.Duration // between two faults, on average
	away        time.Duration // how long something is away at most
	settle      time.Duration // how long runs may take to end afterwards
	movePercent int           // how often an agent is started again on another host
	work        int           // seconds that a process works, about
	falseClocks int           // hosts whose wall clock is stepped
}

// world is all that a test has started.
type world struct {
	t       *testing.T
	o       options
	dice    *rand.Rand
	folder  string
	net     *netns.Net
	servers []*consulserver.Server
	hosts   []int
	proxies []*proxy
	gangs   []*gang

	out      *recorder
	observer *observer
	reader   *reader
	program  string       // of hosts with false clocks
	agents   atomic.Int64 // agents that were started
	closing  atomic.Bool  // no run is begun any more
	pending  []mending    // of the schedule

	operators sync.WaitGroup // of gangs whose data was lost

	mu     sync.Mutex
	errors []error
}

// newWorld starts servers and proxies, and lays out gangs; no agent runs yet.
func newWorld(ctx context.Context, t *testing.T, o options, seed uint64) *world {
	t.Helper()
	need.Root(t)
	w := &world{t: t, o: o, dice: rand.New(rand.NewPCG(seed, 0)), net: netns.New(t, serverCount+o.hosts)}
	w.makeFolder()
	w.servers = consulserver.StartCluster(t, w.net, 0, 1, 2)
	var err error
	w.out, err = openHistory(w.folder)
	w.must(err)
	w.must(w.out.file.Chmod(0o666)) // puppets write as well
	folder.OfAll(t, filepath.Join(w.folder, locksFolder))
	w.observer = newObserver(w.folder, w.out)
	w.reader = &reader{servers: w.servers, out: w.out, verdicts: map[string]string{}}
	if o.falseClocks > 0 {
		w.program = buildFalseClock(t, t.TempDir())
	}
	for i := range o.hosts {
		p := &proxy{net: w.net, host: serverCount + i}
		for n := range w.servers {
			p.servers = append(p.servers, w.servers[(i+n)%serverCount].HTTPAddr)
		}
		if i%2 == 1 && slices.Contains(o.faults, "cut") {
			p.cut = 5 * time.Second
		}
		w.must(p.serve(ctx))
		w.proxies, w.hosts = append(w.proxies, p), append(w.hosts, p.host)
		w.must(setClock(w.on(p.host, "clock"), 0))
		for _, name := range []string{"w", "s"} {
			w.must(os.MkdirAll(w.on(p.host, name), 0o755))
		}
	}
	for n, left := 0, o.agents; left > 0; n++ {
		size := min(left, 3+n%8)
		if rest := left - size; rest < 3 {
			size = left
		}
		left -= size
		g := &gang{
			w: w, app: fmt.Sprintf("gang%d", n), scope: []string{"gang", "instance"}[n%2], size: size, work: o.work,
			agents: map[int]*agent{},
		}
		w.must(g.define())
		w.gangs = append(w.gangs, g)
	}
	return w
}

func (w *world) makeFolder() {
	w.t.Helper()
	if *keepFlag != "" {
		w.folder = *keepFlag
		w.must(os.MkdirAll(w.folder, 0o755))
		return
	}
	w.folder = folder.Temp(w.t, "mh-")
}

// on is the path of something of a host.
func (w *world) on(host int, name string) string {
	return filepath.Join(w.folder, fmt.Sprint(name, host))
}

// binary is the muster of a host: the last ones have a clock of their own.
func (w *world) binary(host int) string {
	if host >= serverCount+w.o.hosts-w.o.falseClocks {
		return w.program
	}
	return muster
}

func (w *world) beginsRuns() bool { return !w.closing.Load() }

func (w *world) note(e event) {
	if err := w.out.write(e); err != nil {
		w.fail(err)
	}
}

// fail is for goroutines: the test ends with these errors.
func (w *world) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.errors = append(w.errors, err)
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) tail(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	return child.Tail(string(text), 15)
}

// play lives through the schedule and returns the history.
func play(t *testing.T, o options, seed uint64) []event {
	t.Helper()
	ctx, end := context.WithCancel(t.Context())
	defer end()
	w := newWorld(ctx, t, o, seed)
	agents, all := context.WithCancel(ctx)
	defer all()
	stop := make(chan struct{})
	var watchers, launchers sync.WaitGroup
	watchers.Go(func() {
		if err := w.observer.watch(stop); err != nil {
			w.fail(err)
		}
	})
	watchers.Go(func() { w.leaders(ctx) })
	for _, g := range w.gangs {
		watchers.Go(func() { w.reader.watch(ctx, g.app) })
		launchers.Go(func() { g.live(agents) })
	}
	w.schedule(agents)
	w.closing.Store(true)
	over := make(chan struct{})
	go func() {
		launchers.Wait()
		close(over)
	}()
	select {
	case <-over:
	case <-time.After(o.settle):
		w.note(event{Kind: notice, Why: "runs that have not ended in time are stopped"})
	}
	all()
	launchers.Wait()
	pause(ctx, time.Second) // the last changes are read
	close(stop)
	end()
	watchers.Wait()
	for _, p := range w.proxies {
		p.work.Wait()
	}
	history, _, err := readHistory(w.folder, 0)
	if err := errors.Join(append(w.errors, err)...); err != nil {
		t.Error(err)
	}
	if len(w.reader.notes) > 0 {
		t.Errorf("what could not be read: %s", strings.Join(w.reader.notes, "\n"))
	}
	w.summarise(history)
	return history
}

// leaders writes down each change of the leader.
func (w *world) leaders(ctx context.Context) {
	last := ""
	for n := 0; ctx.Err() == nil; n++ {
		at, cancel := context.WithTimeout(ctx, time.Second)
		text, err := command(at, w.servers[n%len(w.servers)], "GET", "/v1/status/leader", nil)
		cancel()
		if leader := string(text); err == nil && len(leader) > 2 && leader != last {
			if last != "" {
				w.note(event{Kind: notice, Why: "leader change"})
			}
			last = leader
		}
		pause(ctx, 500*time.Millisecond)
	}
}

// summarise prints what a history had.
func (w *world) summarise(history []event) {
	var faults, outcomes, notices, codes []string
	processes, runs, operators := 0, 0, 0
	for _, e := range history {
		switch e.Kind {
		case fault:
			faults = append(faults, e.Why)
		case started:
			processes++
		case runBegins:
			runs++
		case runStops:
			operators++
		case agentEnds:
			codes = append(codes, fmt.Sprintf("with %d", e.Code))
		case notice:
			notices = append(notices, e.Why)
		}
	}
	for _, v := range arrange(history).verdicts() {
		outcomes = append(outcomes, v.Outcome)
	}
	cuts := int64(0)
	for _, p := range w.proxies {
		cuts += p.cuts.Load()
	}
	w.t.Logf("%d agents in %d gangs on %d hosts, %d Consul servers, faults for %s", w.o.agents, len(w.gangs), w.o.hosts,
		len(w.servers), w.o.length)
	w.t.Logf("faults: %s", counts(faults))
	w.t.Logf("beside them: %d reads cut by proxies, %s", cuts, counts(notices))
	w.t.Logf("%d runs begun; verdicts: %s; ended by an operator after a loss of data: %d", runs, counts(outcomes), operators)
	w.t.Logf("%d agents started, %d processes started; agents ended %s", w.agents.Load(), processes, counts(codes))
	w.t.Logf("%d events in the history", len(history))
}
