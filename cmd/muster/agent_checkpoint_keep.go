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
	"github.com/muster-agent/muster/shim/hostlock"
	"github.com/muster-agent/muster/shim/machine"
	"github.com/muster-agent/muster/shim/plan"
	"github.com/muster-agent/muster/shim/stage"
)

// keeper copies checkpoints to the store that muster.checkpoint.sync names, one at a time; of those that wait the newest wins.
// A copy counts when the registry has it (T13): only a member of the generation that saved it can commit it.
type keeper struct {
	a     *agent
	plan  plan.Plan
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
	pending []keptSave      // in the store, and the registry does not have them yet
}

// save is a checkpoint that was found in a generation.
type save struct {
	checkpoint.Checkpoint
	placement
	gen, attempt int
}

// keptSave is one in the store.
type keptSave struct {
	kept  checkpoint.Kept
	gen   int
	step  registry.CheckpointStep
	stamp string
}

// Pauses between tries of a copy, and how long a commit is tried before the next copy has its turn.
const (
	keepFirst     = time.Second
	keepLongest   = time.Minute
	commitPatient = 5 * time.Second
	passing       = 3 // so many failures in a row are not told of that may pass
)

// openKeeper opens the store of a plan's checkpoints; nil: it names none.
func (a *agent) openKeeper(ctx context.Context, p plan.Plan) (*keeper, error) {
	if p.Checkpoint.Sync == "" || p.Who.Role == "service" {
		return nil, nil
	}
	store, top, err := a.openStore(ctx, p, p.Checkpoint.Sync, true)
	if err != nil {
		return nil, fmt.Errorf("muster.checkpoint.sync: %w", err)
	}
	return &keeper{
		a: a, plan: p, store: store, vault: checkpoint.Vault{Store: store, Top: strings.TrimSuffix(top, "/") + "/" + a.id.appID}, wake: make(chan struct{}, 1), sums: map[checkpoint.Kept]string{},
	}, nil
}

// url is what the registry has of a checkpoint.
func (k *keeper) url(c checkpoint.Kept) string {
	return strings.TrimSuffix(k.plan.Checkpoint.Sync, "/") + "/" + k.a.id.appID + "/" + c.Instance + "/" + c.Name
}

// writes tells that this agent is the one that stores what lies there: of a folder that several share it is one on each host.
func (a *agent) writes(l placement) bool {
	if !l.shared {
		return true
	}
	s := &a.saves
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.writer == nil {
		lock, err := hostlock.Take("checkpoint/" + a.id.appID + "/" + folderID(l.dir))
		if err != nil {
			return false
		}
		s.writer = lock
	}
	return true
}

// offer has a checkpoint copied unless that one is in the store.
func (k *keeper) offer(c checkpoint.Checkpoint, l placement, s machine.State) {
	k.mu.Lock()
	defer k.mu.Unlock()
	stamp := c.Stamp()
	if stamp == k.done || k.next != nil && k.next.Stamp() == stamp && k.next.gen == s.Gen || slices.ContainsFunc(k.pending, func(one keptSave) bool { return one.stamp == stamp }) {
		return
	}
	k.next = &save{c, l, s.Gen, s.Attempt}
	k.ring()
}

func (k *keeper) ring() {
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

// run copies until ctx ends.
func (k *keeper) run(ctx context.Context) {
	pause, failures := keepFirst, 0
	for {
		one, work := k.take()
		switch {
		case one != nil:
			if err := k.copy(ctx, *one); err != nil && ctx.Err() == nil {
				k.a.log.Warn("checkpoint is not stored", "step", one.Step, "again_in", pause, "err", err)
				k.putBack(*one, err)
				if failures++; !fetch.Transient(err) || failures >= passing {
					k.a.warn(warnCheckpoints, k.refused(one.Step, err))
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
func (k *keeper) refused(step int64, err error) string {
	text := fmt.Sprintf("checkpoint of step %d is not stored in %s: %v", step, k.plan.Checkpoint.Sync, err)
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

func (k *keeper) sleep(ctx context.Context, pause time.Duration) {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	case <-k.wake: // a newer one
	}
}

// take gives the checkpoint to copy, or tells that there is something to commit.
func (k *keeper) take() (one *save, commit bool) {
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
func (k *keeper) putBack(one save, err error) {
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
func (k *keeper) rest() {
	for _, c := range k.waiting {
		close(c)
	}
	k.waiting = nil
}

func (k *keeper) idle() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.busy = false
	k.rest()
}

// settled waits until what was offered is stored, and the registry was told once.
func (k *keeper) settled(ctx context.Context) error {
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
func (k *keeper) has(c checkpoint.Checkpoint) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.done == c.Stamp() || k.doneAt > c.Step
}

// copy stores one checkpoint and commits it. What its program changes or removes meanwhile is no fault: another comes.
func (k *keeper) copy(ctx context.Context, s save) error {
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
		k.a.log.Info("checkpoint is another one by now", "step", s.Step, "err", err)
		return nil
	}
	if err != nil {
		return err
	}
	k.a.log.Info("checkpoint is stored", "step", s.Step, "at", k.url(kept), "files", len(s.Files), "bytes", s.Bytes(), "took", time.Since(begun).Round(time.Millisecond))
	k.mu.Lock()
	k.pending = append(k.pending, keptSave{kept, s.gen, registry.CheckpointStep{Step: s.Step, URI: k.url(kept), SHA256: sum, Shared: s.shared}, s.Stamp()})
	k.mu.Unlock()
	k.commit(ctx)
	return nil
}

// another tells that the agent that stored what is in the shared folder before this one has stored this, too.
func (k *keeper) another(ctx context.Context, s save) bool {
	if !s.shared {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, commitPatient)
	defer cancel()
	stored, err := k.a.seatNow().Stored(ctx)
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

func (k *keeper) manifest(s save) checkpoint.Manifest {
	a := k.a
	return checkpoint.Manifest{
		App: a.id.appID, Run: a.id.run, Founded: stamp(a.seatNow().Founded()), Instance: a.loop.State().Instance.String(), Inc: a.inc,
		Generation: s.gen, Attempt: s.attempt, Saved: stamp(time.Now()), Framework: k.plan.Framework, Place: s.place, Shared: s.shared,
	}
}

func (k *keeper) send(ctx context.Context, parcels []checkpoint.Parcel) error {
	all := make([]stage.Parcel, len(parcels))
	for i, p := range parcels {
		all[i] = stage.Parcel{From: p.From, Name: p.Name, To: p.To}
	}
	return k.a.transfer().Send(ctx, k.store, all)
}

// lastSave hands on that a process has ended, once what it saved last is in the store: after that nobody may commit it any more.
// What ends the wait for outputs ends this one: the kill at the end of a grace.
func (a *agent) lastSave(e machine.Event) {
	k, s := a.keeperNow(), a.loop.State()
	if k == nil {
		a.ended(e)
		return
	}
	limit := seconds(k.plan.StageTimeout)
	switch {
	case limit <= 0:
		limit = time.Hour
	case s.Phase == machine.Running && !e.Exit.OK() && s.Policy.Scope == "instance":
		a.ended(e) // it comes back where its files are
		return
	case s.Phase == machine.Running && !e.Exit.OK():
		limit = s.StopGrace() // the others wait
	}
	ctx, cancel := context.WithTimeoutCause(context.Background(), limit, stageTimeout(limit))
	calledOff, callOff := context.WithCancelCause(ctx)
	a.mu.Lock()
	a.callOff = callOff
	a.mu.Unlock()
	go func() {
		defer cancel()
		defer callOff(nil)
		if err := k.settled(calledOff); err != nil {
			a.log.Error("the last checkpoint is not in the store", "err", err)
		}
		a.ended(e)
	}()
}

func (a *agent) keeperNow() *keeper {
	a.saves.mu.Lock()
	defer a.saves.mu.Unlock()
	return a.saves.keeper
}

// local is the folder that a store's checkpoints come back to.
func (k *keeper) local(place string) (*os.Root, error) {
	top, err := os.OpenRoot(k.plan.Checkpoint.Dir)
	if err != nil || place == "." {
		return top, err
	}
	defer top.Close()
	if err := top.MkdirAll(filepath.FromSlash(place), 0o755); err != nil {
		return nil, err
	}
	if o := k.a.checkpointOwner(); o != nil {
		if err := top.Lchown(place, o.UID, o.GID); err != nil {
			return nil, err
		}
	}
	return top.OpenRoot(place)
}

// checkpointOwner is whom the files of a checkpoint are given to; nil: the agent's own user.
func (a *agent) checkpointOwner() *checkpoint.Owner {
	if a.user == nil || os.Geteuid() != 0 {
		return nil
	}
	return &checkpoint.Owner{UID: a.user.UID, GID: a.user.GID}
}
