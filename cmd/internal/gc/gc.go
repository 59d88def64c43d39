package gc

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/muster-agent/muster/cmd/internal/apps"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/status"
	"github.com/muster-agent/muster/shim/workdir"
)

// Folder is the work folder of a run that is over.
type Folder struct {
	App   string
	Path  string
	Ended time.Time
	Bytes int64 // on the disk
	Known bool  // the records of this host are of the run in this folder
}

// Find finds the folders of runs that ended before an age and left a verdict, the oldest first. A run without one may
// be resumed from its folder.
func Find(ctx context.Context, k apps.Lookup, age time.Duration, now time.Time) ([]Folder, error) {
	sample, err := status.DefaultWorkDir("app")
	if err != nil {
		return nil, exit.With(exit.Forbidden, err)
	}
	top := filepath.Dir(sample)
	entries, err := os.ReadDir(top)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, exit.With(exit.Forbidden, err)
	}
	var found []Folder
	for _, e := range entries {
		f := Folder{App: e.Name(), Path: filepath.Join(top, e.Name())}
		if !e.IsDir() || !f.over() || now.Sub(f.Ended) < age {
			continue
		}
		facts, err := k.OnHost(ctx, f.App)
		if err != nil || facts.Living() {
			continue
		}
		f.Known = facts.Local != nil && facts.Local.WorkDir == f.Path
		if f.Bytes, err = size(f.Path); err != nil {
			return nil, exit.With(exit.Forbidden, err)
		}
		found = append(found, f)
	}
	slices.SortFunc(found, func(a, b Folder) int { return a.Ended.Compare(b.Ended) })
	return found, nil
}

// over reads when the run ended with a verdict; false: it did not, or the folder is none of a run.
func (f *Folder) over() bool {
	path := filepath.Join(f.Path, "result.json")
	var result status.ResultFile
	if status.ReadJSON(path, &result) != nil || result.App != f.App || result.Verdict == nil {
		return false
	}
	info, err := os.Lstat(path)
	if err != nil {
		return false
	}
	f.Ended = info.ModTime()
	return true
}

// Remove removes the folder, unless a run has taken it meanwhile.
func (f Folder) Remove() error {
	lock, err := workdir.LockRun(f.Path)
	if err != nil {
		return exit.With(exit.Held, err)
	}
	err = os.RemoveAll(f.Path)
	if err := errors.Join(err, lock.Release()); err != nil {
		return exit.With(exit.Forbidden, fmt.Errorf("remove work folder: %w", err))
	}
	return nil
}

// size is what the files of a folder take of the disk, in bytes. What vanishes meanwhile, or what a process has closed
// to all, takes nothing: one folder must not keep the others from being removed.
func size(folder string) (bytes int64, err error) {
	err = filepath.WalkDir(folder, func(_ string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
			return nil
		}
		if err != nil {
			return err
		}
		if info, err := d.Info(); err == nil {
			bytes += onDisk(info)
		}
		return nil
	})
	return bytes, err
}

// onDisk is what a file takes of the disk: st_blocks counts 512 bytes (stat(2)).
func onDisk(info fs.FileInfo) int64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return st.Blocks * 512
	}
	return info.Size()
}
