package checkpoint

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/checkpoint/format"
	"github.com/muster-agent/muster/shim/files"
	"github.com/muster-agent/muster/shim/machine"
)

// storedSkipped is logged of a checkpoint in the store that is not intact.
const storedSkipped = "stored checkpoint skipped"

// download lays out the checkpoint of a step that all ranks have, or the newest where no step is given. What is here
// already is not downloaded. A checkpoint that is torn in the store is skipped with a warning, and the one before it is
// taken.
func (u *uploader) download(ctx context.Context, in registry.Instance, found format.Found, step *int64) error {
	candidates, err := u.candidates(ctx, in, step)
	if err != nil {
		return err
	}
	here, have := found.Newest()
	if step != nil {
		here, have = found.At(*step)
	}
	for _, one := range candidates {
		if have && one.Step <= here.Step {
			if one.Step < here.Step || u.has(here) || u.same(ctx, one) {
				if one.Step == here.Step {
					u.known(here)
				}
				return nil
			}
			u.m.cfg.Log.Warn("local checkpoint is of another branch", "step", here.Step, "want", one.URI)
		}
		err := u.downloadOne(ctx, one)
		if !errors.Is(err, errTorn) && !u.removed(ctx, one, err) {
			return err
		}
		u.m.cfg.Log.Warn(storedSkipped, "at", one.URI, "why", err)
		if err := u.m.cfg.Registry().Condemn(ctx, registry.BadCopy{URI: one.URI, SHA256: one.SHA256}); err != nil {
			u.m.logWrite("report a torn checkpoint", err)
		}
	}
	if step == nil || have || len(candidates) == 0 {
		return nil
	}
	return fmt.Errorf("step %d, which every rank has stored, is not intact in %s", *step, u.m.plan.Checkpoint.Sync)
}

// removed tells whether a copy that is absent was removed alone. Where this host sees nothing else of the instance that
// stored it, the host may see another store, and then the copy is good for all others.
func (u *uploader) removed(ctx context.Context, one registry.CheckpointStep, err error) bool {
	if !errors.Is(err, errAbsent) {
		return false
	}
	kept, _ := copyAt(one.URI)
	others, err := u.remote.List(ctx, kept.Instance)
	return err == nil && len(others) > 0
}

// candidates are the committed checkpoints that suit, newest first: those of the instance's own folder, else those of
// the shared one. The keys of all are read only for the shared one: all ranks of a gang resume at the same time.
func (u *uploader) candidates(
	ctx context.Context, in registry.Instance, step *int64,
) ([]registry.CheckpointStep, error) {
	mine, err := u.m.cfg.Registry().Own(ctx)
	if err != nil {
		return nil, err
	}
	if own, _ := suiting(map[registry.Instance]registry.Checkpoint{in: mine}, in, step); len(own) > 0 {
		return own, nil
	}
	stored, err := u.m.cfg.Registry().Stored(ctx)
	if err != nil {
		return nil, err
	}
	own, shared := suiting(stored, in, step)
	if len(own) == 0 {
		own = shared
	}
	return own, nil
}

// suiting are the sound copies of a step, or of all steps, newest first.
func suiting(
	stored map[registry.Instance]registry.Checkpoint, in registry.Instance, step *int64,
) (own, shared []registry.CheckpointStep) {
	for instance, c := range registry.Sound(stored) {
		for _, s := range c.Steps {
			if _, kept := copyAt(s.URI); !kept || step != nil && s.Step != *step {
				continue
			}
			if s.Shared {
				shared = append(shared, s)
			} else if instance == in {
				own = append(own, s)
			}
		}
	}
	newest := func(a, b registry.CheckpointStep) int { return cmp.Compare(b.Step, a.Step) }
	slices.SortFunc(own, newest)
	slices.SortFunc(shared, newest)
	return own, shared
}

func (u *uploader) downloadOne(ctx context.Context, one registry.CheckpointStep) error {
	begun := time.Now()
	kept, _ := copyAt(one.URI)
	m, sum, err := u.remote.Read(ctx, kept)
	if err == nil && one.SHA256 != "" && sum != one.SHA256 {
		err = fmt.Errorf("its manifest is not the one that was committed: %w", errTorn)
	}
	if err != nil {
		return err
	}
	root, err := u.folder(m.Place)
	if err != nil {
		return err
	}
	defer root.Close()
	if err := u.remote.Bring(ctx, m, root, u.m.cfg.Inc, u.m.cfg.Transfer().Bring); err != nil {
		return err
	}
	u.m.cfg.Log.Info("checkpoint downloaded", "step", m.Step, "from", one.URI, "generation", m.Generation,
		"files", len(m.Files), "bytes", m.Bytes(), "took", time.Since(begun).Round(time.Millisecond))
	found, _, err := u.m.look(ctx, false)
	if err != nil {
		return err
	}
	c, ok := found.At(m.Step)
	if !ok {
		return fmt.Errorf("step %d of %s is not complete by the rules of this instance", m.Step, one.URI)
	}
	u.known(c)
	return writeState(root, u.m.plan.Framework, found, c)
}

// same tells whether the local files of a step are those that were committed: a container that returns to a host may
// find a step there that its gang has given up. If the store cannot be asked, the local files stay.
func (u *uploader) same(ctx context.Context, one registry.CheckpointStep) bool {
	kept, _ := copyAt(one.URI)
	m, _, err := u.remote.Read(ctx, kept)
	if err != nil {
		return true
	}
	root, err := u.folder(m.Place)
	if err != nil {
		return true
	}
	defer root.Close()
	return same(ctx, root, m)
}

// folder is the local folder that a stored checkpoint is laid out in.
func (u *uploader) folder(place string) (files.UserFolder, error) {
	top, err := u.m.cfg.Folder(u.m.plan, u.m.plan.Checkpoint.Dir)
	if err != nil || place == "." {
		return top, err
	}
	defer top.Close()
	if err := top.MkdirAll(place, 0o755); err != nil {
		return files.UserFolder{}, err
	}
	return top.OpenFolder(place)
}

// quarantine keeps what this instance has stored where nobody resumes from it.
func (u *uploader) quarantine(ctx context.Context, s machine.State) error {
	moved, err := u.remote.Quarantine(ctx, s.Instance.String(), "g"+strconv.Itoa(s.Gen))
	if len(moved) > 0 {
		u.m.cfg.Log.Warn("stored checkpoints quarantined", "number", len(moved), "newest", moved[len(moved)-1].Step)
	}
	return err
}
