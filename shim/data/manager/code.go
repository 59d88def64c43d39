package manager

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

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

// bringCode brings codeDir to its folder.
func (m *Manager) bringCode(
	ctx context.Context, p plan.Plan, item plan.StageItem, work files.Folder, folder files.UserFolder,
) error {
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
	for i := range found {
		found[i].Fixed = true // what is counted here is what is brought
		bytes += found[i].Size
	}
	if bytes > mostCode {
		return fault.Definition(fmt.Errorf("got %d bytes, want at most %d; put larger files where dataDir is", bytes,
			mostCode))
	}
	name, err := folder.Rel(item.To)
	if err != nil {
		return err
	}
	return work.Replace(folder, name, func(tmp *os.Root, _ string) error {
		copies := transfer.Below(path, found)
		if !top.Dir { // a file alone gets the name itself
			copies[0].To = files.Filled
			return m.Transfer().Bring(ctx, tmp, copies)
		}
		return m.fill(ctx, tmp, copies)
	})
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
