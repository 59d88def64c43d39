package manager

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/shim/data/transfer"
	"github.com/muster-agent/muster/shim/fault"
	"github.com/muster-agent/muster/shim/files"
	"github.com/muster-agent/muster/shim/plan"
	"github.com/muster-agent/muster/shim/store"
)

// checkDataDir warns if the folder that the tasks read their data from does not exist yet.
func (m *Manager) checkDataDir(url string) {
	path := files.LocalPath(url)
	if url == "" || path == "" {
		return
	}
	if !files.IsThere(path) {
		m.cfg.Log.Warn("dataDir does not exist", "path", path)
	}
}

// makeOutput makes the folder that the tasks of an OpenPAI job leave their results in.
func (m *Manager) makeOutput(ctx context.Context, p plan.Plan, item plan.StageItem) error {
	opened, path, err := m.cfg.Stores.Open(ctx, p, item.From, true)
	if errors.Is(err, store.ErrScheme) { // the plan has warned of it
		return nil
	}
	if err != nil {
		return err
	}
	if files.LocalPath(item.From) != "" {
		if err := m.cfg.Stores.Visible(p, path, true); err != nil {
			return err
		}
	}
	return opened.MkdirAll(ctx, path)
}

// mostCode is the limit of OpenPAI on a job's own files, in bytes.
const mostCode = 200_000_000

// bringCode brings codeDir to its folder, and a copy beside it where the version of OpenPAI wants one.
func (m *Manager) bringCode(ctx context.Context, p plan.Plan, item plan.StageItem, work files.Folder) error {
	opened, path, err := m.cfg.Stores.Open(ctx, p, item.From, false)
	if err != nil {
		return err
	}
	top, err := opened.Stat(ctx, path)
	if errors.Is(err, fs.ErrNotExist) {
		return fault.Definition(errors.New("it is not there, want a folder; check codeDir"))
	}
	if err != nil {
		return err
	}
	listing := transfer.Listing{Store: opened}
	if files.LocalPath(item.From) != "" {
		listing.Without = m.ofTheRun(path)
	}
	found, err := listing.Tree(ctx, top)
	if err != nil {
		return err
	}
	var bytes int64
	for _, f := range found {
		bytes += f.Size
	}
	if bytes > mostCode {
		return fault.Definition(fmt.Errorf("got %d bytes, want at most %d; put larger files where dataDir is", bytes,
			mostCode))
	}
	copies := transfer.Below(path, found)
	if !top.Dir && item.Kind == plan.StageCode { // a file alone gets the name itself
		copies = []transfer.Copy{{From: found[0], To: filepath.Base(path)}}
	}
	if item.Kind == plan.StageCodeBeside {
		for _, c := range copies {
			if first, _, _ := strings.Cut(c.To, "/"); slices.Contains(append(appdef.OwnNames(), appdef.CodeName),
				first) {
				return fault.Definition(fmt.Errorf("it has %s, which is muster's own name where it is copied to; "+
					"want another name", first))
			}
		}
	}
	name, err := work.Rel(item.To)
	if err != nil {
		return err
	}
	return m.placeCode(ctx, p, item, work, name, copies)
}

// ofTheRun tells which files lie in the work folder, where a folder around the work folder is read. The agents' own
// files are not part of the input, and change while it is read.
func (m *Manager) ofTheRun(read string) func(path string) bool {
	truth, work := files.Resolve(read), files.Resolve(m.cfg.WorkDir)
	if files.Within(truth, work) {
		return nil
	}
	return func(path string) bool {
		if rest, ok := strings.CutPrefix(path, read); ok {
			path = truth + rest
		}
		return files.Within(path, work)
	}
}

// placeCode puts the files at the item's name, all of them or none, and then beside it.
func (m *Manager) placeCode(
	ctx context.Context, p plan.Plan, item plan.StageItem, work files.Folder, name string, copies []transfer.Copy,
) (err error) {
	first, _, _ := strings.Cut(name, "/")
	tmp := files.Unfinished + first // one agent has this index: an older folder is of a killed one
	if err := errors.Join(work.RemoveAll(tmp), work.Mkdir(tmp, 0o700), work.Mkdir(tmp+"/whole", 0o755)); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, work.RemoveAll(tmp)) }()
	whole, err := work.OpenRoot(tmp + "/whole")
	if err != nil {
		return err
	}
	err = m.Transfer().Bring(ctx, whole, copies)
	if err = errors.Join(err, whole.Close()); err != nil {
		return err
	}
	from := tmp + "/whole"
	if item.Kind == plan.StageCode && len(copies) == 1 && copies[0].To == filepath.Base(item.To) {
		from += "/" + copies[0].To
	}
	if err := errors.Join(work.RemoveAll(name), work.Rename(from, name)); err != nil {
		return err
	}
	if item.Kind != plan.StageCodeBeside {
		return nil
	}
	return m.codeBeside(ctx, p, item, work, copies)
}

// codeBeside copies the files into the folder where the process starts, where it may change them.
func (m *Manager) codeBeside(
	ctx context.Context, p plan.Plan, item plan.StageItem, work files.Folder, copies []transfer.Copy,
) (err error) {
	code, err := work.Make(item.To)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, code.Close()) }()
	opened := files.StoreOf(code, item.To)
	again := slices.Clone(copies)
	for i, c := range copies {
		again[i].From = transfer.File{Store: opened, Path: filepath.Join(item.To, c.To), Size: c.From.Size}
	}
	folder, err := work.Make(p.Process.Folder)
	if err != nil {
		return err
	}
	err = m.Transfer().Bring(ctx, folder, again)
	if err = errors.Join(err, folder.Close()); err != nil {
		return err
	}
	for _, c := range copies {
		info, err := code.Stat(c.To)
		if err == nil {
			err = code.Chmod(c.To, info.Mode().Perm()&^0o222)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
