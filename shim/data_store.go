package shim

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/muster-agent/muster/shim/files"
	"github.com/muster-agent/muster/shim/plan"
	"github.com/muster-agent/muster/shim/store"
)

// ownStore makes the default store in the work folder, for the process's user. What is in it stays whose it is.
func (r stageRoom) ownStore(p plan.Plan, work files.Folder) error {
	if !r.usesStore(p) {
		return nil
	}
	folder, err := work.Make(r.storeDir())
	if err != nil {
		return err
	}
	return errors.Join(files.As(r.container.User()).Own(folder, "."), folder.Close())
}

// storeDir is the folder that is the default filesystem where nothing names another.
func (a *agent) storeDir() string {
	return strings.TrimPrefix(strings.ReplaceAll(plan.DefaultStore, plan.Work, a.workDir), "file:")
}

// usesStore tells whether a path of the plan's data is in the store in the work folder.
func (a *agent) usesStore(p plan.Plan) bool {
	return slices.ContainsFunc(dataURLs(p), func(url string) bool { return files.Within(files.LocalPath(url), a.storeDir()) })
}

// dataURLs are the places that a plan names.
func dataURLs(p plan.Plan) []string {
	var all []string
	for _, item := range p.Stage {
		if item.FromStore() {
			all = append(all, item.From)
		}
	}
	if p.Inputs != nil {
		for _, one := range p.Inputs.From {
			all = append(all, one.From...)
		}
	}
	if p.Outputs != nil {
		for _, one := range p.Outputs.To {
			all = append(all, one.To)
		}
	}
	if p.PAI != nil {
		all = append(all, p.PAI.DefaultFS, p.PAI.DataDir, p.PAI.OutputDir)
	}
	all = append(all, p.Checkpoint.Sync)
	return slices.DeleteFunc(all, func(url string) bool { return url == "" })
}

// openStore finds the store of a path that the definition names, with the rights that its process has.
func (a *agent) openStore(ctx context.Context, p plan.Plan, url string, write bool) (store.Store, string, error) {
	opened, path, err := a.stores(p).Open(ctx, url)
	if err != nil || files.LocalPath(url) == "" { // a store elsewhere knows by itself who may do what
		return opened, path, err
	}
	return a.container.Admission(p).Open(path, write)
}

// dataFolders are the folders of the host that a container needs for what its process is told of.
func (a *agent) dataFolders(p plan.Plan) []string {
	var dirs []string
	if a.usesStore(p) {
		dirs = append(dirs, a.storeDir())
	}
	top := a.filesystem.Local()
	switch {
	case top == "" || top == "/" || files.Within(top, a.workDir):
		return dirs
	case files.Within(a.workDir, top): // mounted whole it would lie over the run's own mounts
		return append(dirs, a.partsOf(top, dataURLs(p))...)
	case slices.ContainsFunc(dataURLs(p), func(url string) bool { return files.Within(files.LocalPath(url), top) }) && files.IsFolder(top):
		return append(dirs, top)
	}
	return dirs
}

// partsOf are the folders of a filesystem that data is in, beside the work folder that lies there too.
func (a *agent) partsOf(top string, urls []string) []string {
	var dirs []string
	for _, url := range urls {
		path := files.LocalPath(url)
		apart := !files.Within(path, a.workDir) && !files.Within(a.workDir, path)
		if path != "" && path != top && files.Within(path, top) && apart && files.IsFolder(path) && !slices.Contains(dirs, path) {
			dirs = append(dirs, path)
		}
	}
	slices.Sort(dirs) // what lies in another comes after it
	return dirs
}
