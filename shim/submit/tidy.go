package submit

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/launcher/job"
	"github.com/muster-agent/muster/shim/launcher/known"
	"github.com/muster-agent/muster/shim/store"
)

// How long a run's folder stays that no --wait has removed (waiter.end): after the run's verdict, for a launcher may
// start agents once more until it sees that the job ended; and without a verdict, for a job may wait in a queue, and an
// interrupted run may be resumed.
const (
	keptAfterVerdict = 10 * time.Minute
	keptUnheard      = 30 * 24 * time.Hour
)

// RemoveRuns removes from a store what all runs of an app were brought, which met in this registry and are over.
func RemoveRuns(ctx context.Context, url string, stores store.Set, app string, at registry.Address) error {
	s, err := openStore(ctx, url, stores)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, removePatience)
	defer cancel()
	records, err := s.Records(ctx)
	errs := []error{err}
	for _, r := range records {
		if r.App == app && r.Registry == at {
			errs = append(errs, s.Folder(r.App, r.Run).Remove(ctx))
		}
	}
	return errors.Join(errs...)
}

// tidyPatience bounds all of tidy: who submits without --wait waits for it.
const tidyPatience = 15 * time.Second

// tidy removes the folders of runs that are over, now that ours is started. Only this submission's registry is asked:
// a record is a file that others may have written, and our token goes to no address that a file names.
func (s *submission) tidy(ctx context.Context, report func(line string)) {
	// It does not answer.
	if s.artifacts.store == nil || s.before.err != nil && !errors.Is(s.before.err, registry.ErrNoApp) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, tidyPatience)
	defer cancel()
	records, err := s.artifacts.store.Records(ctx)
	if err != nil {
		if ctx.Err() == nil {
			report("store: " + err.Error())
		}
		return
	}
	standings := map[string]standing{s.app(): s.before} // of our own app as it was before ours
	for _, r := range records {
		if r.Registry != s.registry() || r.App == s.app() && r.Run == s.run() {
			continue
		}
		at, asked := standings[r.App]
		if !asked {
			at.st, at.err = s.Registry.Status(ctx, r.App)
			standings[r.App] = at
		}
		if ctx.Err() != nil || !at.over(r) && !s.followed(ctx, at, r) {
			continue
		}
		if err := s.artifacts.store.Folder(r.App, r.Run).Remove(ctx); err != nil && ctx.Err() == nil {
			report(fmt.Sprintf("store: what run %s of %s brought stays: %v", r.Run, r.App, err))
		}
	}
}

// over tells that a run is over: it has a verdict, and no agent of it is left. One of which there is no verdict may
// begin, or be resumed, for a long time.
func (s standing) over(r record) bool {
	switch {
	case errors.Is(s.err, registry.ErrNoApp):
		return time.Since(r.At) > keptUnheard
	case s.err != nil:
		return false
	case !IsRunOf(s.st.App.Run, r.Run): // an earlier run, or a later one while this one waits in a queue
		return time.Since(r.At) > keptUnheard
	case s.st.Live > 0:
		return false
	case s.st.Verdict == nil:
		return time.Since(r.At) > keptUnheard
	}
	return time.Since(s.st.Verdict.At) > keptAfterVerdict
}

// followed tells that a run is over which another one of its app has followed: its verdict stays in the registry
// beside that one's.
func (s *submission) followed(ctx context.Context, at standing, r record) bool {
	if at.err != nil || IsRunOf(at.st.App.Run, r.Run) {
		return false
	}
	by, _ := known.Find(r.Launcher)
	v, err := s.lastVerdict(ctx, by.Client, r)
	return err == nil && v != nil && !startsAgain(by.Client, *v) && time.Since(v.At) > keptAfterVerdict
}

// mostNumbers bounds how many numbered runs of a job the registry is asked for.
const mostNumbers = 20

// lastVerdict is that of a job's run, nil while there is none: of one that its launcher has started again the newest
// one's. Slurm numbers the second and those after it, from 1, a JobSet all, from 0.
func (s *submission) lastVerdict(ctx context.Context, by job.Launcher, r record) (*registry.Verdict, error) {
	last, err := s.Registry.Verdict(ctx, r.App, r.Run)
	if err != nil || !by.NewRuns {
		return last, err
	}
	for n := range mostNumbers {
		v, err := s.Registry.Verdict(ctx, r.App, fmt.Sprintf("%s-%d", r.Run, n))
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
