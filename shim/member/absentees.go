package member

import (
	"context"
	"sync"
	"time"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/shim/plan"
)

// absentees are the instances that a barrier waits for and that no agent holds, by the last answer of the registry. It
// is asked only where a service manager listens: while a gang waits, reads that grow with it are to be few.
type absentees struct {
	ask     func(context.Context) (absent []string, all int, err error)
	begin   func() (context.Context, context.CancelFunc) // of a question: it outlives the call that asks; close ends it
	changed func()                                       // there is another answer

	mu     sync.Mutex
	gen    int
	next   time.Time // when the answer is old
	busy   bool
	last   []string
	ended  bool
	cancel context.CancelFunc // of the question under way
	work   sync.WaitGroup
}

// A question follows the last after absentPace, and absentEach more for each instance of the gang; it takes
// absentPatience at most.
const (
	absentPace     = 5 * time.Second
	absentEach     = 100 * time.Millisecond
	absentPatience = 6 * time.Second
)

// Absent names the instances without an agent that the barrier waits for, as the registry answered last. It never
// waits: where the answer is old, another question begins.
func (m *Member) Absent(now time.Time) []string {
	return m.absent.names(now, m.cfg.Loop.State().Directive.Gen)
}

// names gives the newest answer for a generation, and asks again where it is old.
func (q *absentees) names(now time.Time, gen int) []string {
	q.mu.Lock()
	defer q.mu.Unlock()
	if gen != q.gen {
		q.gen, q.last, q.next = gen, nil, time.Time{}
	}
	if q.busy || q.ended || now.Before(q.next) {
		return q.last
	}
	ctx, cancel := q.begin()
	q.busy, q.cancel = true, cancel
	q.work.Go(func() {
		defer cancel()
		found, all, err := q.ask(ctx)
		q.keep(found, all, err)
		q.changed()
	})
	return q.last
}

func (q *absentees) keep(found []string, all int, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.busy = false
	q.next = time.Now().Add(absentPace + time.Duration(all)*absentEach)
	if err == nil {
		q.last = found
	}
}

// close waits for the question under way; from then on the registry is asked nothing.
func (q *absentees) close() {
	q.mu.Lock()
	q.ended = true
	cancel := q.cancel
	q.mu.Unlock()
	if cancel != nil {
		cancel()
	}
	q.work.Wait()
}

// mostAskers is the size of the largest gang in which each member asks who is absent; in a larger one the conductor's
// agent does.
const mostAskers = 256

// AskAbsent asks the registry which instances of the gang have no agent, in rank order. asked: this agent is one of
// those that ask.
func (m *Member) AskAbsent(ctx context.Context) (absent []string, asked bool, err error) {
	app := m.cfg.App.WithCounts(m.Counts())
	if len(plan.Instances(&app)) > mostAskers && !m.cfg.Loop.State().Conducts {
		return nil, false, nil
	}
	ctx, cancel := context.WithTimeout(ctx, absentPatience)
	defer cancel()
	absent, _, err = m.askWhoIsAbsent(ctx)
	return absent, true, err
}

// askWhoIsAbsent asks the registry which instances of the gang have no agent, in rank order, and counts the gang.
func (m *Member) askWhoIsAbsent(ctx context.Context) (absent []string, all int, err error) {
	app := m.cfg.App.WithCounts(m.Counts())
	live, err := m.cfg.Client.Live(ctx, m.cfg.AppID)
	for _, in := range plan.Instances(&app) {
		if c := app.Component(in.Component); c.Settings.Role == appdef.RoleService {
			continue
		}
		all++
		if !live[in] {
			absent = append(absent, in.String())
		}
	}
	return absent, all, err
}
