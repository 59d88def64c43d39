package checkpoint

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/muster-agent/muster/shim/checkpoint/format"
	"github.com/muster-agent/muster/shim/machine"
	"github.com/muster-agent/muster/shim/plan"
	"github.com/muster-agent/muster/shim/store"
	"github.com/muster-agent/muster/shim/store/file"
)

// countedStore counts how often its folders are listed.
type countedStore struct {
	store.Store
	listed *atomic.Int32
}

func (c countedStore) List(ctx context.Context, path string) ([]store.Info, error) {
	c.listed.Add(1)
	return c.Store.List(ctx, path)
}

// sharing is a host with agents that look at one folder of a store.
type sharing struct {
	t      *testing.T
	store  countedStore
	top    string
	state  string
	listed atomic.Int32
	told   Notices

	mu   sync.Mutex
	seen map[int]int64 // the newest step that each agent has reported
	at   map[int]time.Time
}

func newSharing(t *testing.T) *sharing {
	t.Helper()
	quiet := func(string, string) {}
	s := &sharing{t: t, state: t.TempDir(), told: Notices{Warn: quiet, Mended: quiet}, seen: map[int]int64{}, at: map[int]time.Time{}}
	at, top, err := file.Open(t.Context(), t.TempDir())
	must(t, err)
	s.store, s.top = countedStore{at, &s.listed}, top
	return s
}

// agent watches until the returned function is called.
func (s *sharing) agent(n int, state string) (*Manager, func()) {
	m := New(s.t.Context(), Config{
		Log: slog.New(slog.DiscardHandler), AppID: "app", State: state, Loop: machine.NewAgent(), Notices: s.told,
		Open: func(context.Context, plan.Plan, string, bool) (store.Store, string, error) {
			return s.store, s.top, nil
		},
	})
	m.plan = plan.Plan{Checkpoint: plan.Checkpoint{Dir: "test://" + s.top, Pattern: "step-*"}}
	w := watch{m: m, least: storePoll, report: func(c format.Checkpoint, _ location) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if c.Step != s.seen[n] {
			s.seen[n], s.at[n] = c.Step, time.Now()
		}
	}}
	ctx, cancel := context.WithCancel(s.t.Context())
	var running sync.WaitGroup
	running.Go(func() { w.run(ctx) })
	return m, func() { cancel(); running.Wait(); m.Close() }
}

func (s *sharing) save(step string) {
	f, err := s.store.Create(s.t.Context(), s.top+"/step-"+step)
	must(s.t, err)
	_, err = f.Write([]byte("saved"))
	must(s.t, err)
	must(s.t, f.Close())
}

// reported waits until the agents have reported a step, and tells how long the last of them took.
func (s *sharing) reported(step int64, agents ...int) time.Duration {
	began, late := time.Now(), time.Duration(0)
	time.Sleep(2 * quietPoll)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, n := range agents {
		if s.seen[n] != step {
			s.t.Errorf("agent %d has reported step %d, want %d", n, s.seen[n], step)
		}
		late = max(late, s.at[n].Sub(began))
	}
	return late
}

// TestOneListsForAll: of the agents of a host that share a checkpoint folder one lists it, and less often while nothing
// changes. All report what it finds, and when it ends another lists.
func TestOneListsForAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSharing(t)
		all := []int{0, 1, 2, 3, 4, 5, 6, 7}
		ends := make([]func(), len(all))
		for _, n := range all {
			_, ends[n] = s.agent(n, s.state)
		}
		s.save("100")
		s.reported(100, all...)
		before := s.listed.Load()
		time.Sleep(10 * time.Minute)
		if got, most := s.listed.Load()-before, int32(10*time.Minute/quietPoll)+1; got > most {
			t.Errorf("%d lists in ten minutes by %d agents, want at most %d", got, len(all), most)
		}
		s.save("200")
		if late := s.reported(200, all...); late > quietPoll+folderPoll {
			t.Errorf("the step was reported after %s", late)
		}
		for _, n := range all[:4] {
			ends[n]()
		}
		s.save("300")
		if late := s.reported(300, all[4:]...); late > quietPoll+folderPoll {
			t.Errorf("the step was reported after %s, without those that have ended", late)
		}
		for _, n := range all[4:] {
			ends[n]()
		}
	})
}

// TestListingOfBefore: an agent that has resumed reports nothing that was listed before, and one that shares no state
// folder looks for itself.
func TestListingOfBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSharing(t)
		_, end := s.agent(0, s.state)
		defer end()
		time.Sleep(time.Minute) // it lists for all
		m, end := s.agent(1, s.state)
		defer end()
		_, end = s.agent(2, t.TempDir())
		defer end()
		s.save("100")
		s.reported(100, 0, 1, 2)
		synctest.Wait()
		must(t, s.store.Remove(t.Context(), s.top+"/step-100"))
		s.save("90")
		m.mu.Lock()
		m.resumedAt = time.Now()
		m.mu.Unlock()
		s.mu.Lock()
		clear(s.seen)
		s.mu.Unlock()
		time.Sleep(folderPoll)
		synctest.Wait()
		s.mu.Lock()
		got := s.seen[1]
		s.mu.Unlock()
		if got != 90 {
			t.Errorf("the agent that resumed reported step %d, want 90", got)
		}
		s.reported(90, 0, 1, 2)
	})
}
