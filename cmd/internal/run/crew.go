package run

import (
	"context"
	"maps"
	"slices"
	"sync"
	"syscall"

	"github.com/muster-agent/muster/cmd/internal/apps"
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/plan"
	"github.com/muster-agent/muster/shim/tail"
)

// crew are the agents of a run as a flex changes them: who is to be there, and how they are shown. It belongs to
// the goroutine that attends the run.
type crew struct {
	*runner
	counts map[string]int // in force, or to be
	deaths chan ended
	away   map[*child]bool // their indexes were taken away

	hide func() // ends what is shown
}

// crew is who the run begins with: what the definition says, or what the directive says of one that goes on.
func (r *runner) crew(ctx context.Context) *crew {
	c := &crew{
		runner: r, counts: r.app.Counts(), deaths: make(chan ended, 64), away: map[*child]bool{},
		hide: func() {},
	}
	if d, ok := r.directive(ctx); ok {
		c.counts = c.wanted(d)
	}
	return c
}

// directive asks for the run's newest; false: there is none, or the registry does not answer.
func (r *runner) directive(ctx context.Context) (registry.Directive, bool) {
	ctx, cancel := context.WithTimeout(ctx, apps.Patience)
	defer cancel()
	st, err := r.client.Status(ctx, r.appID)
	return st.Directive, err == nil && st.Directive.Run == r.runID
}

// wanted are the counts of a directive, or of the flex up that it prepares.
func (c *crew) wanted(d registry.Directive) map[string]int {
	counts := c.app.Counts()
	maps.Copy(counts, d.Counts)
	for name, n := range d.Target {
		counts[name] = max(counts[name], n)
	}
	return counts
}

// engage launches the wanted instances that are not there.
func (c *crew) engage() error {
	for _, in := range c.wantedInstances() {
		if err := c.call(in); err != nil {
			return err
		}
	}
	return nil
}

func (c *crew) wantedInstances() []registry.Instance {
	app := c.app.WithCounts(c.counts)
	return plan.Instances(&app)
}

func (c *crew) call(in registry.Instance) error {
	at := slices.IndexFunc(c.agents, func(a *child) bool { return a.instance == in })
	switch {
	case at < 0:
		a := &child{instance: in, words: &tail.Buffer{}}
		c.agents = append(c.agents, a)
		return c.launch(a)
	case c.away[c.agents[at]]:
		delete(c.away, c.agents[at])
		return c.launch(c.agents[at])
	}
	return nil
}

func (c *crew) launch(a *child) error { return c.runner.launch(a, c.counts, c.deaths) }

// resize follows a flex: it launches the agents of new indexes. Those whose indexes are taken away leave by
// themselves.
func (c *crew) resize(ctx context.Context, d registry.Directive, e *end) {
	counts := c.wanted(d)
	if d.Verdict != nil || maps.Equal(counts, c.counts) {
		return
	}
	c.say("%s: %s", c.appID, d.Why)
	c.counts = counts
	if err := c.enlarge(ctx); err != nil && e.failure == nil {
		e.failure = err
		c.each(func(a *child) { a.send(syscall.SIGTERM) })
	}
}

// show begins what a person sees of the run.
func (c *crew) show(ctx context.Context) { c.hide = c.display(ctx) }

// enlarge launches newcomers and shows them with the others.
func (c *crew) enlarge(ctx context.Context) error {
	if c.tabular() { // the table reads the list of agents all the time
		c.hide()
		defer c.show(ctx)
		return c.engage()
	}
	before := len(c.agents)
	err := c.engage()
	// What new agents wrote last is shown before it ends: cancel ends it.
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var followed sync.WaitGroup
	var screen sync.Mutex
	for _, a := range c.agents[before:] {
		c.lines(ctx, &followed, &screen, a.instance.String())
	}
	others := c.hide
	c.hide = func() { cancel(); followed.Wait(); others() }
	return err
}

// gangRetried tells that muster.retry has formed the gang again.
func (c *crew) gangRetried(ctx context.Context) bool {
	d, ok := c.directive(ctx)
	return ok && d.Restarts(0)
}

// dismissed tells that an agent ended because a flex has taken its index away: the directive may not have come
// here yet.
func (c *crew) dismissed(ctx context.Context, a *child) bool {
	d, ok := c.directive(ctx)
	if !ok || !d.Drops(a.instance) {
		return false
	}
	c.away[a] = true
	return true
}
