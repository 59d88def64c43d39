package manager

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"time"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/shim/data"
	"github.com/muster-agent/muster/shim/data/transfer"
	"github.com/muster-agent/muster/shim/files"
	"github.com/muster-agent/muster/shim/journal"
	"github.com/muster-agent/muster/shim/machine"
	"github.com/muster-agent/muster/shim/plan"
	"github.com/muster-agent/muster/shim/wording"
)

// KeepSides copies the folders of this instance's side processes to where they are kept, once the run has a verdict: a
// run that is interrupted has them still when it is resumed. What fails is a warning.
func (m *Manager) KeepSides() {
	p, s := m.cfg.Process.Plan(), m.cfg.Loop.State()
	if s.Directive.Verdict == nil || s.Phase == machine.Superseded {
		return
	}
	for _, side := range p.Sides {
		if side.History == "" {
			continue
		}
		ctx, cancel := m.withinStaging(m.ctx)
		to, left, err := m.keepSide(ctx, p, side)
		cancel()
		switch {
		case err != nil:
			err = fmt.Errorf("muster.side.%s.history: folder %s was not kept in %s: %w", side.Name, side.Folder,
				side.History, err)
			m.cfg.Log.Warn("folder of a side process not kept", "side", side.Name, "err", err)
			m.cfg.Notices.Warn("side "+side.Name, wording.Short(err.Error()))
		case to == "":
			m.cfg.Log.Info("side process has left nothing to keep", "side", side.Name, "folder", side.Folder)
		default:
			text := fmt.Sprintf("%s: folder %s is kept in %s (%s)", side.Name, side.Folder, to,
				appdef.Counted(left.Files, "file"))
			m.cfg.Log.Info("folder of a side process kept", "side", side.Name, "to", to, "files", left.Files,
				"bytes", left.Bytes)
			m.cfg.Notices.Event(journal.EventKept, text, time.Now())
		}
	}
}

// keepSide copies one folder: it gets its name when it is complete. to is where it is then; "": it is empty.
func (m *Manager) keepSide(ctx context.Context, p plan.Plan, side plan.Side) (to string, left data.Left, err error) {
	store, at, err := m.cfg.Stores.Open(ctx, p, side.History, true)
	if err != nil {
		return "", left, err
	}
	folder, err := m.instanceFolder(p)
	if err != nil {
		return "", left, err
	}
	defer func() { err = errors.Join(err, folder.Close()) }()
	from, err := folder.Make(side.Folder)
	if err != nil {
		return "", left, err
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	if empty, err := isEmpty(from); empty || err != nil {
		return "", left, err
	}
	// An app that has run before has left its folder there.
	name := m.cfg.Self.AppID
	if _, err := store.Stat(ctx, path.Join(at, name)); !errors.Is(err, fs.ErrNotExist) {
		name += "-" + m.cfg.Self.Run
	}
	leave := data.Leave{
		Store: store, Out: at, Folder: name, Run: m.outputsOwner(), Turn: m.cfg.Self.Inc, Saves: ".",
	}
	saved, err := data.Save{Leave: leave, Pause: restlessPause}.Run(ctx, from, m.Transfer())
	if err != nil {
		return "", left, err
	}
	if len(saved.Restless) > 0 {
		m.cfg.Log.Warn("files that keep changing are not kept", "side", side.Name, "paths",
			strings.Join(saved.Restless, ", "))
	}
	err = leave.GiveUp(ctx)
	for _, dir := range []string{path.Join(at, transfer.Temporary, leave.Run), path.Join(at, transfer.Temporary)} {
		err = errors.Join(err, store.Prune(ctx, dir))
	}
	return strings.TrimRight(side.History, "/") + "/" + name, saved.Left, err
}

func isEmpty(folder files.UserFolder) (bool, error) {
	dir, err := folder.OpenFile(".", os.O_RDONLY, 0)
	if err != nil {
		return false, err
	}
	_, err = dir.Readdirnames(1)
	_ = dir.Close() // it was read
	if errors.Is(err, io.EOF) {
		return true, nil
	}
	return false, err
}
