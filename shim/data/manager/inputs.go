package manager

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/shim/data"
	"github.com/muster-agent/muster/shim/data/transfer"
	"github.com/muster-agent/muster/shim/files"
	"github.com/muster-agent/muster/shim/plan"
	"github.com/muster-agent/muster/shim/store"
	"github.com/muster-agent/muster/shim/workdir"
)

// bringInputs brings the instance's share of each input, or keeps its list for the start.
func (m *Manager) bringInputs(
	ctx context.Context, p plan.Plan, work files.Folder, folder files.UserFolder,
) error {
	in := p.Inputs
	if in == nil {
		return nil
	}
	if in.Strategy == appdef.StrategyStream {
		return m.bringStream(ctx, p)
	}
	if in.Workers == 0 {
		return emptyFolders(in, folder)
	}
	begun, shares := time.Now(), map[string][]transfer.File{}
	deal := data.Assignment{Workers: in.Workers, Chief: in.Chief}
	var copies []transfer.Copy
	for _, one := range in.From {
		files, err := m.listInput(ctx, p, one)
		if err != nil {
			return fmt.Errorf("input %s: %w", one.Name, err)
		}
		share := files
		if in.Strategy == appdef.StrategyDownload || !in.Whole {
			share = deal.Share(files, in.Worker)
			m.warnIdle(in, one.Name, len(files), deal.Idle(files))
		}
		shares[one.Name] = share
		if in.Strategy != appdef.StrategyDownload {
			continue
		}
		named := transfer.Numbered(one.Name, share, begun.UnixMilli())
		if !in.Rename {
			if named, err = transfer.Names(one.Name, share); err != nil {
				return err
			}
		}
		copies = append(copies, named...)
	}
	if in.Strategy == appdef.StrategyPlaceholder {
		return m.keepList(p, shares)
	}
	came, err := m.bringMissing(ctx, p, work, folder, copies)
	if err != nil {
		return err
	}
	var bytes int64
	for _, c := range copies {
		bytes += max(c.From.Size, 0)
	}
	m.cfg.Log.Info("inputs brought", "files", len(copies), "bytes", bytes, "came", came, "took",
		time.Since(begun).Round(time.Millisecond))
	return nil
}

// bringMissing brings the files that an earlier agent or attempt has not brought. came is how many bytes were
// moved, those of failed tries included.
func (m *Manager) bringMissing(
	ctx context.Context, p plan.Plan, work files.Folder, folder files.UserFolder, copies []transfer.Copy,
) (came int64, err error) {
	ledger, err := transfer.OpenLedger(work.Root, workdir.InputsLedger(filepath.Base(p.Process.Folder)))
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, ledger.Close()) }()
	for _, one := range p.Inputs.From {
		if err := ledger.Sweep(folder, one.Name, copies); err != nil {
			return 0, fmt.Errorf("input %s: %w", one.Name, err)
		}
	}
	var moved atomic.Int64
	t := m.inputTransfer(p.Inputs)
	t.Ledger, t.Moved = ledger, func(_ string, n int64) { moved.Add(n) }
	err = t.Bring(ctx, folder, copies)
	return moved.Load(), err
}

// emptyFolders makes the folders of an instance that reads nothing.
func emptyFolders(in *plan.Inputs, folder files.UserFolder) error {
	for _, one := range in.From {
		if err := errors.Join(folder.Clear(one.Name), folder.Mkdir(one.Name, 0o755)); err != nil {
			return err
		}
	}
	return nil
}

// inputTransfer moves inputs as the definition says.
func (m *Manager) inputTransfer(in *plan.Inputs) transfer.Transfer {
	const none = -1 // a transfer with -1 retries tries once
	t := m.Transfer()
	t.Parallel = cmp.Or(in.Parallel, t.Parallel)
	if n := in.Retries; n != nil {
		t.Retries = cmp.Or(*n, none)
	}
	return t
}

// listInput lists the files of one input in their order.
func (m *Manager) listInput(ctx context.Context, p plan.Plan, one plan.Input) ([]transfer.File, error) {
	var all []transfer.File
	seen := map[string]bool{}
	for _, url := range one.From {
		opened, path, err := m.cfg.Stores.Open(ctx, p, url, false)
		if err != nil {
			return nil, err
		}
		listing := transfer.Listing{Store: opened}
		if files.LocalPath(url) != "" {
			listing.Without = m.ofTheRun(path)
		}
		files, err := listing.List(ctx, path)
		if err != nil {
			return nil, err
		}
		for _, f := range files {
			if there, ok := opened.(store.Located); ok {
				f.URL = there.URL(f.Path)
			}
			f.URL = shownURL(url, f)
			if !seen[f.Name()] {
				seen[f.Name()] = true
				all = append(all, f)
			}
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("no file in %s", strings.Join(one.From, ", "))
	}
	return all, nil
}

// shownURL is how a process is told of a file that was found by a URL: by the whole URL in a store, as Hadoop writes
// it; by the path alone on this host.
func shownURL(url string, f transfer.File) string {
	scheme := store.SchemeOf(url)
	rest, authority := strings.CutPrefix(url[len(scheme):], "//")
	switch {
	case f.URL != "" || store.SchemeOf(f.Path) != "" || files.LocalPath(url) != "":
		return f.URL
	case !authority:
		return scheme + f.Path
	}
	host, _, _ := strings.Cut(rest, "/")
	return scheme + "//" + host + f.Path
}

// mostNamed is how many instances a warning names.
const mostNamed = 10

// warnIdle names the instances that an input leaves without a file. The first reader names all of them, each of them
// itself.
func (m *Manager) warnIdle(in *plan.Inputs, name string, files int, idle []int) {
	if len(idle) == 0 || in.Worker != 0 && !slices.Contains(idle, in.Worker) {
		return
	}
	app := m.cfg.App.WithCounts(m.cfg.Gang.Counts())
	readers := plan.Readers(&app, m.cfg.Loop.State().Instance.Component)
	var names []string
	for _, i := range idle {
		if i < len(readers) {
			names = append(names, readers[i].String())
		}
	}
	if more := len(names) - mostNamed; more > 0 {
		names = append(names[:mostNamed], fmt.Sprintf("and %d more", more))
	}
	m.cfg.Log.Warn("fewer files than instances", "input", name, "files", files, "instances", in.Workers, "idle",
		strings.Join(names, ", "))
}

// keepList keeps the list of the process's input files for its start.
func (m *Manager) keepList(p plan.Plan, shares map[string][]transfer.File) error {
	for _, share := range shares {
		for _, f := range share {
			if f.URL != "" { // it is on a store
				continue
			}
			if err := m.cfg.Stores.Visible(p, f.Path, false); err != nil {
				return err
			}
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.inputList = data.Placeholder(shares)
	return nil
}

// Inputs tells a process its input files: by a variable, or by a file if the variables grow too long.
func (m *Manager) Inputs(start *plan.Start) {
	m.layClasses(start)
	in := m.cfg.Process.Plan().Inputs
	m.mu.Lock()
	list := m.inputList
	m.mu.Unlock()
	if list == "" || in == nil {
		return
	}
	start.Env[data.ListVariable] = list
	if data.TooLong(start.Env, in.ListLength) {
		delete(start.Env, data.ListVariable)
		start.Files[data.ListFile] = list + "\n"
	}
}
