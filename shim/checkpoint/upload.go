package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/checkpoint/format"
	"github.com/muster-agent/muster/shim/fault"
	"github.com/muster-agent/muster/shim/files"
	"github.com/muster-agent/muster/shim/hostlock"
	"github.com/muster-agent/muster/shim/machine"
	"github.com/muster-agent/muster/shim/plan"
	"github.com/muster-agent/muster/shim/status"
	"github.com/muster-agent/muster/shim/store"
)

// uploader copies checkpoints to the store that muster.checkpoint.sync names, one at a time; of those that wait the
// newest wins. A copy counts once the registry has it (T13): only a member of the generation that saved it can commit
// it.
type uploader struct {
	m      *Manager
	remote Store
	wake   chan struct{}
	sums   map[StoredCopy]string // of the manifests that were read

	mu      sync.Mutex
	next    *upload         // the newest that waits
	busy    bool            // an upload or its commit is in progress
	done    string          // stamp of the newest checkpoint that the registry has
	doneAt  int64           // its step
	waiting []chan struct{} // closed when nothing waits and nothing is in progress, or what waits cannot be uploaded
	failed  error           // why the last upload failed, where a retry alone does not help
	pending []uploaded      // in the store, and not committed yet

	pruned bool // of run alone: nothing that the last commit left has to be removed
}

// upload is a checkpoint as it was found in a generation.
type upload struct {
	format.Checkpoint
	location
	gen, attempt int
}

// uploaded is a checkpoint in the store.
type uploaded struct {
	kept  StoredCopy
	gen   int
	step  registry.CheckpointStep
	stamp string
}

const (
	firstPause     = time.Second // between two attempts to upload
	longestPause   = time.Minute
	commitPatience = 5 * time.Second // for one commit
	tidyFirst      = 5 * time.Second // then doubling: the conductor looks that often for a new common step
	quietFailures  = 3               // that may pass by themselves, before the user is warned
)

// Prepare refuses a checkpoint folder that the process may not write to, and opens the checkpoint store of a plan. It
// removes what an earlier agent of this index uploaded in part, and commits what the store has where the registry knows
// of nothing.
func (m *Manager) Prepare(ctx context.Context, p plan.Plan, in registry.Instance) error {
	m.plan = p
	if err := m.refuseUnwritable(ctx); err != nil {
		return err
	}
	if p.Checkpoint.Sync == "" || m.isService() {
		return nil
	}
	u, err := m.newUploader(ctx)
	if err == nil {
		err = u.remote.Sweep(ctx, in.String())
	}
	if err == nil { // a store that cannot be written to fails now
		err = u.remote.Files.MkdirAll(ctx, u.remote.Top+"/"+in.String())
	}
	if err == nil {
		err = u.adopt(ctx, in)
	}
	if err != nil {
		return fmt.Errorf("muster.checkpoint.sync: %w", store.Refused(p.Checkpoint.Sync, err))
	}
	m.uploader = u
	return nil
}

func (m *Manager) newUploader(ctx context.Context) (*uploader, error) {
	opened, top, err := m.cfg.Open(ctx, m.plan, m.plan.Checkpoint.Sync, true)
	if err != nil {
		return nil, err
	}
	remote := Store{Files: opened, Top: strings.TrimSuffix(top, "/") + "/" + m.cfg.AppID}
	return &uploader{
		m: m, remote: remote, wake: make(chan struct{}, 1), sums: map[StoredCopy]string{}, pruned: true,
	}, nil
}

// url names a checkpoint in the registry.
func (u *uploader) url(c StoredCopy) string {
	return strings.TrimSuffix(u.m.plan.Checkpoint.Sync, "/") + "/" + u.m.cfg.AppID + "/" + c.Instance + "/" + c.Name
}

// uploads tells whether this agent uploads from a folder: of those that share one, a single agent of each host does.
func (m *Manager) uploads(l location) bool {
	if !l.shared {
		return true
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.writer == nil {
		lock, err := hostlock.Take("checkpoint/" + m.cfg.AppID + "/" + files.ID(l.dir))
		if err != nil {
			return false
		}
		m.writer = lock
	}
	return true
}

// offer uploads a checkpoint unless the store has it.
func (u *uploader) offer(c format.Checkpoint, l location, s machine.State) {
	u.mu.Lock()
	defer u.mu.Unlock()
	stamp := c.Stamp()
	waits := u.next != nil && u.next.Stamp() == stamp && u.next.gen == s.Gen
	same := func(one uploaded) bool { return one.stamp == stamp }
	if stamp == u.done || waits || slices.ContainsFunc(u.pending, same) {
		return
	}
	u.next = &upload{c, l, s.Gen, s.Attempt}
	u.ring()
}

func (u *uploader) ring() {
	select {
	case u.wake <- struct{}{}:
	default:
	}
}

// laterTidy fires when old checkpoints are to be removed that the last commit had to leave; nil: there are none.
func (u *uploader) laterTidy(after time.Duration) <-chan time.Time {
	if u.pruned {
		return nil
	}
	return time.After(after)
}

// run uploads until ctx ends.
func (u *uploader) run(ctx context.Context) {
	defer u.idle()
	pause, failures, again := firstPause, 0, tidyFirst
	for ctx.Err() == nil {
		one, pending := u.take()
		switch {
		case one != nil:
			err := u.upload(ctx, *one)
			if err == nil || ctx.Err() != nil {
				pause, failures = firstPause, 0
				continue
			}
			failures++
			u.retry(*one, err, pause, failures)
			u.sleep(ctx, pause)
			pause = min(2*pause, longestPause)
		case pending: // the registry was unreachable
			u.commit(ctx)
			u.sleep(ctx, firstPause)
		default:
			select {
			case <-ctx.Done():
			case <-u.wake:
				again = tidyFirst
			case <-u.laterTidy(again):
				u.pruned = u.tidy(ctx)
				again = min(2*again, longestPause)
			}
		}
	}
}

// retry puts a checkpoint back that could not be uploaded, and warns of what may not pass by itself.
func (u *uploader) retry(one upload, err error, pause time.Duration, failures int) {
	u.m.cfg.Log.Warn("checkpoint upload failed", "step", one.Step, "retry_in", pause, "err", err)
	u.putBack(one, err)
	if !store.Transient(err) || failures >= quietFailures {
		u.m.cfg.Notices.Warn(warnCheckpoints, u.refused(one.Step, err))
	}
}

// refused says that the store does not take a checkpoint, and what to do.
func (u *uploader) refused(step int64, err error) string {
	text := fmt.Sprintf("checkpoint of step %d is not stored in %s: %v", step, u.m.plan.Checkpoint.Sync, err)
	if told, ok := errors.AsType[*store.Error](err); ok && told.Hint != "" {
		return text
	}
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return text + "; free space there, or raise its quota"
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return text + "; let the process's user write there"
	}
	return text + "; the upload is retried, see agent.log"
}

func (u *uploader) sleep(ctx context.Context, pause time.Duration) {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	case <-u.wake: // a newer checkpoint
	}
}

// take gives the checkpoint to upload, and tells whether something is to be committed.
func (u *uploader) take() (one *upload, pending bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	one, u.next = u.next, nil
	u.failed = nil
	if u.busy = one != nil; !u.busy {
		u.release()
	}
	return one, len(u.pending) > 0
}

// putBack keeps a checkpoint for a retry, unless a newer one waits. Nobody waits for what only a person can mend: a
// quota, a right.
func (u *uploader) putBack(one upload, err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if !store.Transient(err) {
		u.failed = err
		u.release()
	}
	if u.next == nil {
		u.next = &one
	}
}

// release ends the wait for all uploads; the caller holds the lock.
func (u *uploader) release() {
	for _, c := range u.waiting {
		close(c)
	}
	u.waiting = nil
}

func (u *uploader) idle() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.busy = false
	u.release()
}

// wait returns once everything offered is in the store, and the registry was told once.
func (u *uploader) wait(ctx context.Context) error {
	u.mu.Lock()
	if u.next == nil && !u.busy {
		u.mu.Unlock()
		return nil
	}
	over := make(chan struct{})
	u.waiting = append(u.waiting, over)
	u.ring() // a failed upload is retried now, not after its pause
	u.mu.Unlock()
	select {
	case <-over:
		u.mu.Lock()
		defer u.mu.Unlock()
		return u.failed
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// has tells whether the registry has this checkpoint, or will never take it, or has one of a later step.
func (u *uploader) has(c format.Checkpoint) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.done == c.Stamp() || u.doneAt > c.Step
}

// known notes that the store has a checkpoint of this folder.
func (u *uploader) known(c format.Checkpoint) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.done, u.doneAt = c.Stamp(), c.Step
}

// upload stores one checkpoint and commits it. A process that changes or removes it meanwhile is no failure: another
// one comes.
func (u *uploader) upload(ctx context.Context, one upload) error {
	begun := time.Now()
	if u.byAnother(ctx, one) {
		u.known(one.Checkpoint)
		return nil
	}
	root, err := u.m.open(one.location)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer root.Close()
	kept, sum, err := u.remote.Put(ctx, u.manifest(one), one.Checkpoint, root, u.send)
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, errChanged) {
		u.m.cfg.Log.Info("checkpoint changed during its upload", "step", one.Step, "err", err)
		return nil
	}
	if err != nil {
		return err
	}
	url := u.url(kept)
	u.m.cfg.Log.Info("checkpoint uploaded", "step", one.Step, "at", url, "files", len(one.Files), "bytes", one.Bytes(),
		"took", time.Since(begun).Round(time.Millisecond))
	step := registry.CheckpointStep{Step: one.Step, URI: url, SHA256: sum, Shared: one.shared}
	u.mu.Lock()
	u.pending = append(u.pending, uploaded{kept, one.gen, step, one.Stamp()})
	u.mu.Unlock()
	u.commit(ctx)
	return nil
}

// byAnother tells whether the agent that uploaded from the shared folder before this one has uploaded this step as
// well.
func (u *uploader) byAnother(ctx context.Context, one upload) bool {
	if !one.shared {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, commitPatience)
	defer cancel()
	stored, err := u.m.cfg.Registry().Stored(ctx)
	if err != nil {
		return false // one copy too many is better than none
	}
	same := func(s registry.CheckpointStep) bool { return s.Shared && s.Step == one.Step }
	for _, c := range stored {
		if c.Gen == one.gen && slices.ContainsFunc(c.Steps, same) {
			return true
		}
	}
	return false
}

func (u *uploader) manifest(one upload) Manifest {
	m := u.m
	return Manifest{
		App: m.cfg.AppID, Run: m.cfg.Run, Founded: status.Stamp(m.cfg.Registry().Founded()),
		Instance: m.cfg.Loop.State().Instance.String(), Inc: m.cfg.Inc, Generation: one.gen, Attempt: one.attempt,
		Saved: status.Stamp(time.Now()), Framework: m.plan.Framework, Place: one.place, Shared: one.shared,
	}
}

func (u *uploader) send(ctx context.Context, uploads []store.Upload) error {
	return u.m.cfg.Transfer().Send(ctx, u.remote.Files, uploads)
}

// LastUpload waits until the last checkpoint of a process that has ended is in the store: once its end is reported,
// nobody may commit it any more. It is nil where there is nothing to wait for.
func (m *Manager) LastUpload(x *machine.Exit) func(context.Context) {
	u, s := m.uploader, m.cfg.Loop.State()
	if u == nil {
		return nil
	}
	limit := time.Duration(m.plan.StageTimeout * float64(time.Second))
	switch {
	case limit <= 0:
		limit = time.Hour
	case s.Phase == machine.Running && !x.OK() && s.Policy.Scope == registry.ScopeInstance:
		return nil // it restarts where its files are
	case s.Phase == machine.Running && !x.OK():
		limit = s.StopGrace() // the other instances wait
	}
	return func(ctx context.Context) {
		ctx, cancel := context.WithTimeoutCause(ctx, limit, fault.StageTimeout(limit))
		defer cancel()
		if err := u.wait(ctx); err != nil {
			m.cfg.Log.Error("last checkpoint not uploaded", "err", err)
		}
	}
}
