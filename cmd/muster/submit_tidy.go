package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/muster-agent/muster/cmd/internal/apps"
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/registry/consul"
	"github.com/muster-agent/muster/shim/submit"
)

// How long a run's files stay that nobody waits for: after its verdict, for a launcher starts agents once more that end with
// it; and where it has none, for a job may wait in a queue, and an interrupted run may go on.
const (
	restedFor = 10 * time.Minute
	unheardOf = 30 * 24 * time.Hour
)

const (
	// tidyPatience bounds all of it: who submits without --wait waits for it.
	tidyPatience = 15 * time.Second
	// mostApps bounds how many apps a registry is asked for at once.
	mostApps = 8
)

// appStanding is what the registry says of an app.
type appStanding struct {
	st  consul.Status
	err error
}

// tidy takes away what runs that are over have left in the store, now that ours is started. Only this submission's registry is
// asked: a mark is a file that others may have written, and our token goes to nobody that a file names.
func (r *sent) tidy(ctx context.Context, say func(line string)) {
	if r.cargo.store == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, tidyPatience)
	defer cancel()
	marks, err := r.cargo.store.Marks(ctx)
	if err != nil {
		if ctx.Err() == nil {
			say("store: " + err.Error())
		}
		return
	}
	marks = slices.DeleteFunc(marks, func(m submit.Mark) bool { return m.Registry != r.registry.String() || m.App == r.app && m.Run == r.run })
	known := r.standings(ctx, marks)
	var errs []error
	for _, m := range marks {
		if at, asked := known[m.App]; asked && (at.over(m) || r.rested(ctx, at, m)) {
			if err := r.cargo.store.Release(ctx, m.App, m.Run); err != nil {
				errs = append(errs, fmt.Errorf("what run %s of %s brought stays: %w", m.Run, m.App, err))
			}
		}
	}
	if err := errors.Join(append(errs, r.cargo.store.Sweep(ctx))...); err != nil && ctx.Err() == nil {
		say("store: " + err.Error())
	}
}

// standings are those of all apps that have marks, as far as the registry tells them in time. Our own app is known by its last run,
// as it was before ours.
func (r *sent) standings(ctx context.Context, marks []submit.Mark) map[string]appStanding {
	known := map[string]appStanding{r.app: r.before}
	if r.before.err != nil && !errors.Is(r.before.err, registry.ErrNoApp) { // it does not answer
		return nil
	}
	var mu sync.Mutex
	var wg sync.WaitGroup
	free := make(chan struct{}, mostApps)
	asked := map[string]bool{r.app: true}
	for _, m := range marks {
		if asked[m.App] {
			continue
		}
		asked[m.App] = true
		free <- struct{}{}
		wg.Go(func() {
			defer func() { <-free }()
			st, err := r.lookup().Status(ctx, r.registry, m.App)
			mu.Lock()
			defer mu.Unlock()
			known[m.App] = appStanding{st, err}
		})
	}
	wg.Wait()
	return known
}

// over tells that a run that has brought something is over: it has a verdict, and nobody of it is left. One of which there is no
// verdict may begin, or go on, for a long time.
func (s appStanding) over(m submit.Mark) bool {
	switch {
	case errors.Is(s.err, registry.ErrNoApp):
		return time.Since(m.At) > unheardOf
	case s.err != nil:
		return false
	case !runOf(s.st.App.Run, m.Run): // an earlier run, or a later one while this one waits in a queue
		return time.Since(m.At) > unheardOf
	case s.st.Live > 0:
		return false
	case s.st.Verdict == nil:
		return time.Since(m.At) > unheardOf
	}
	return time.Since(s.st.Verdict.At) > restedFor
}

// rested tells that a run is over which another one of its app has followed: its verdict stays in the registry beside that one's.
func (r *sent) rested(ctx context.Context, at appStanding, m submit.Mark) bool {
	if at.err != nil || runOf(at.st.App.Run, m.Run) {
		return false
	}
	v, err := lastVerdict(ctx, r.registry, m)
	return err == nil && v != nil && !startsAnew(m.Launcher, *v) && time.Since(v.At) > restedFor
}

// mostNumbers bounds how many runs of a job's a registry is asked for that its launcher has numbered.
const mostNumbers = 20

// lastVerdict is that of a job's run, nil while there is none: of one that its launcher has started anew the newest one's. Slurm
// numbers the second and those after it, from 1, a JobSet all, from 0.
func lastVerdict(ctx context.Context, address registry.Address, m submit.Mark) (*registry.Verdict, error) {
	c, err := apps.Open(address)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(ctx, apps.Patience)
	defer cancel()
	last, err := c.Verdict(ctx, m.App, m.Run)
	if err != nil || !clientOf(m.Launcher).NewRuns {
		return last, err
	}
	for n := range mostNumbers {
		v, err := c.Verdict(ctx, m.App, fmt.Sprintf("%s-%d", m.Run, n))
		if err != nil {
			return nil, err
		}
		if v == nil && n > 0 {
			break
		}
		if v != nil {
			last = v
		}
	}
	return last, nil
}
