package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/muster-agent/muster/packages/fetch"
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/checkpoint"
	"github.com/muster-agent/muster/shim/checkpoint/format"
	"github.com/muster-agent/muster/shim/files"
	"github.com/muster-agent/muster/shim/hostlock"
	"github.com/muster-agent/muster/shim/machine"
	"github.com/muster-agent/muster/shim/stage"
	"github.com/muster-agent/muster/shim/status"
)

// uploader copies checkpoints to the store that muster.checkpoint.sync names, one at a time; of those that wait the newest wins.
// A copy counts when the registry has it (T13): only a member of the generation that saved it can commit it.
type uploader struct {
	m     *checkpointManager
	store stage.Store
	vault checkpoint.Vault
	wake  chan struct{}

	sums map[checkpoint.Kept]string // of the manifests that were read

	mu      sync.Mutex
	next    *save           // the newest that waits
	busy    bool            // a copy or its commit is under way
	done    string          // stamp of the newest that the registry has
	doneAt  int64           // its step
	waiting []chan struct{} // closed when nothing waits and nothing is under way, or what waits cannot be stored
	failed  error           // why the last copy was none, where another try changes nothing by itself
	pending []uploaded      // in the store, and the registry does not have them yet
}

// save is a checkpoint that was found in a generation.
type save struct {
	format.Checkpoint
	placement
	gen, attempt int
}

// uploaded is one in the store.
type uploaded struct {
	kept  checkpoint.Kept
	gen   int
	step  registry.CheckpointStep
	stamp string
}

// Pauses between tries of a copy, and how long a commit is tried before the next copy has its turn.
const (
	keepFirst      = time.Second
	keepLongest    = time.Minute
	commitPatience = 5 * time.Second
	passing        = 3 // so many failures in a row are not told of that may pass
)

// openUploader opens the store of a plan's checkpoints; nil: it names none.
func (m *checkpointManager) openUploader(ctx context.Context) (*uploader, error) {
	if m.plan.Checkpoint.Sync == "" || m.plan.Who.Role == "service" {
		return nil, nil
	}
	store, top, err := m.cfg.Open(ctx, m.plan, m.plan.Checkpoint.Sync, true)
	if err != nil {
		return nil, fmt.Errorf("muster.checkpoint.sync: %w", err)
	}
	return &uploader{
		m: m, store: store, vault: checkpoint.Vault{Store: store, Top: strings.TrimSuffix(top, "/") + "/" + m.cfg.AppID},
		wake: make(chan struct{}, 1), sums: map[checkpoint.Kept]string{},
	}, nil
}

// url is what the registry has of a checkpoint.
func (k *uploader) url(c checkpoint.Kept) string {
	return strings.TrimSuffix(k.m.plan.Checkpoint.Sync, "/") + "/" + k.m.cfg.AppID + "/" + c.Instance + "/" + c.Name
}

// writes tells that this agent is the one that stores what lies there: of a folder that several share it is one on each host.
func (m *checkpointManager) writes(l placement) bool {
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

// offer has a checkpoint copied unless that one is in the store.
func (k *uploader) offer(c format.Checkpoint, l placement, s machine.State) {
	k.mu.Lock()
	defer k.mu.Unlock()
	stamp := c.Stamp()
	if stamp == k.done || k.next != nil && k.next.Stamp() == stamp && k.next.gen == s.Gen || slices.ContainsFunc(k.pending, func(one uploaded) bool { return one.stamp == stamp }) {
		return
	}
	k.next = &save{c, l, s.Gen, s.Attempt}
	k.ring()
}

func (k *uploader) ring() {
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

// run copies until ctx ends.
func (k *uploader) run(ctx context.Context) {
	pause, failures := keepFirst, 0
	for {
		one, work := k.take()
		switch {
		case one != nil:
			if err := k.copy(ctx, *one); err != nil && ctx.Err() == nil {
				k.m.cfg.Log.Warn("checkpoint is not stored", "step", one.Step, "again_in", pause, "err", err)
				k.putBack(*one, err)
				if failures++; !fetch.Transient(err) || failures >= passing {
					k.m.cfg.Notices.Warn(warnCheckpoints, k.refused(one.Step, err))
				}
				k.sleep(ctx, pause)
				pause = min(2*pause, keepLongest)
				continue
			}
			pause, failures = keepFirst, 0
		case work: // the registry did not take it yet
			k.commit(ctx)
			k.sleep(ctx, keepFirst)
			continue
		default:
			select {
			case <-ctx.Done():
				k.idle()
				return
			case <-k.wake:
			}
		}
		if ctx.Err() != nil {
			k.idle()
			return
		}
	}
}

// refused says that the store does not take a checkpoint, and what to do.
func (k *uploader) refused(step int64, err error) string {
	text := fmt.Sprintf("checkpoint of step %d is not stored in %s: %v", step, k.m.plan.Checkpoint.Sync, err)
	if told, ok := errors.AsType[*fetch.Error](err); ok && told.Hint != "" {
		return text
	}
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return text + "; free some there, or give more"
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return text + "; let the process's user write there"
	}
	return text + "; it is tried again, and agent.log says how"
}

func (k *uploader) sleep(ctx context.Context, pause time.Duration) {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	case <-k.wake: // a newer one
	}
}

// take gives the checkpoint to copy, or tells that there is something to commit.
func (k *uploader) take() (one *save, commit bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	one, k.next = k.next, nil
	k.failed = nil
	if k.busy = one != nil; !k.busy {
		k.rest()
	}
	return one, len(k.pending) > 0
}

// putBack has a checkpoint tried again, unless a newer one waits. Nobody waits for what only a person can mend: a quota, a right.
func (k *uploader) putBack(one save, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !fetch.Transient(err) {
		k.failed = err
		k.rest()
	}
	if k.next == nil {
		k.next = &one
	}
}

// rest lets those go that wait for the end of all copies; the caller has the lock.
func (k *uploader) rest() {
	for _, c := range k.waiting {
		close(c)
	}
	k.waiting = nil
}

func (k *uploader) idle() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.busy = false
	k.rest()
}

// settled waits until what was offered is stored, and the registry was told once.
func (k *uploader) settled(ctx context.Context) error {
	k.mu.Lock()
	if k.next == nil && !k.busy {
		k.mu.Unlock()
		return nil
	}
	over := make(chan struct{})
	k.waiting = append(k.waiting, over)
	k.ring() // what failed is tried once more now, and not when its pause is over
	k.mu.Unlock()
	select {
	case <-over:
		k.mu.Lock()
		defer k.mu.Unlock()
		return k.failed
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// has tells that the registry has this save, or will never take it; or one of a later step.
func (k *uploader) has(c format.Checkpoint) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.done == c.Stamp() || k.doneAt > c.Step
}

// copy stores one checkpoint and commits it. What its program changes or removes meanwhile is no fault: another comes.
func (k *uploader) copy(ctx context.Context, s save) error {
	begun := time.Now()
	if k.another(ctx, s) {
		k.known(s.Checkpoint)
		return nil
	}
	root, err := openPlace(s.dir, s.place)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer root.Close()
	kept, sum, err := k.vault.Put(ctx, k.manifest(s), s.Checkpoint, root, k.send)
	if errors.Is(err, os.ErrNotExist) || checkpoint.Changed(err) {
		k.m.cfg.Log.Info("checkpoint is another one by now", "step", s.Step, "err", err)
		return nil
	}
	if err != nil {
		return err
	}
	k.m.cfg.Log.Info("checkpoint is stored", "step", s.Step, "at", k.url(kept), "files", len(s.Files), "bytes", s.Bytes(), "took", time.Since(begun).Round(time.Millisecond))
	k.mu.Lock()
	k.pending = append(k.pending, uploaded{kept, s.gen, registry.CheckpointStep{Step: s.Step, URI: k.url(kept), SHA256: sum, Shared: s.shared}, s.Stamp()})
	k.mu.Unlock()
	k.commit(ctx)
	return nil
}

// another tells that the agent that stored what is in the shared folder before this one has stored this, too.
func (k *uploader) another(ctx context.Context, s save) bool {
	if !s.shared {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, commitPatience)
	defer cancel()
	stored, err := k.m.cfg.Registry().Stored(ctx)
	if err != nil {
		return false // a copy too many is better than none
	}
	for _, c := range stored {
		if c.Gen == s.gen && slices.ContainsFunc(c.Steps, func(one registry.CheckpointStep) bool { return one.Shared && one.Step == s.Step }) {
			return true
		}
	}
	return false
}

func (k *uploader) manifest(s save) checkpoint.Manifest {
	m := k.m
	return checkpoint.Manifest{
		App: m.cfg.AppID, Run: m.cfg.Run, Founded: status.Stamp(m.cfg.Registry().Founded()), Instance: m.cfg.Loop.State().Instance.String(), Inc: m.cfg.Inc,
		Generation: s.gen, Attempt: s.attempt, Saved: status.Stamp(time.Now()), Framework: m.plan.Framework, Place: s.place, Shared: s.shared,
	}
}

func (k *uploader) send(ctx context.Context, parcels []checkpoint.Parcel) error {
	all := make([]stage.Parcel, len(parcels))
	for i, p := range parcels {
		all[i] = stage.Parcel{From: p.From, Name: p.Name, To: p.To}
	}
	return k.m.cfg.Transfer().Send(ctx, k.store, all)
}

// lastUpload waits until what the process saved last is in the store: after its end is reported nobody may commit it any more.
// nil: there is nothing to wait for.
func (m *checkpointManager) lastUpload(x *machine.Exit) func(context.Context) {
	k, s := m.uploader, m.cfg.Loop.State()
	if k == nil {
		return nil
	}
	limit := seconds(m.plan.StageTimeout)
	switch {
	case limit <= 0:
		limit = time.Hour
	case s.Phase == machine.Running && !x.OK() && s.Policy.Scope == registry.ScopeInstance:
		return nil // it comes back where its files are
	case s.Phase == machine.Running && !x.OK():
		limit = s.StopGrace() // the others wait
	}
	return func(ctx context.Context) {
		ctx, cancel := context.WithTimeoutCause(ctx, limit, stageTimeout(limit))
		defer cancel()
		if err := k.settled(ctx); err != nil {
			m.cfg.Log.Error("the last checkpoint is not in the store", "err", err)
		}
	}
}

// local is the folder that a store's checkpoints come back to.
func (k *uploader) local(place string) (*os.Root, error) {
	top, err := files.As(k.m.cfg.Owner()).Below(k.m.plan.Checkpoint.Dir)
	if err != nil || place == "." {
		return top.Root, err
	}
	defer top.Close()
	if err := top.MkdirAll(filepath.FromSlash(place), 0o755); err != nil {
		return nil, err
	}
	if err := files.As(k.m.cfg.Owner()).Own(top.Root, place); err != nil {
		return nil, err
	}
	return top.OpenRoot(place)
}
