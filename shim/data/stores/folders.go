package stores

import (
	"errors"
	"slices"
	"strings"

	"github.com/muster-agent/muster/shim/files"
	"github.com/muster-agent/muster/shim/plan"
)

// MakeDefault makes the default store in the work folder, for the process's user. Its content keeps its owners.
func (s *Stores) MakeDefault(p plan.Plan, work files.Folder) error {
	if !s.usesDefault(p) {
		return nil
	}
	folder, err := work.Make(s.defaultDir())
	if err != nil {
		return err
	}
	return errors.Join(files.As(s.Owner()).Own(folder, "."), folder.Close())
}

// defaultDir is the folder that is the default filesystem where nothing names another.
func (s *Stores) defaultDir() string {
	return strings.TrimPrefix(strings.ReplaceAll(plan.DefaultStore, plan.Work, s.WorkDir), "file:")
}

// usesDefault tells whether a path of the plan's data is in the store in the work folder.
func (s *Stores) usesDefault(p plan.Plan) bool {
	return slices.ContainsFunc(urlsOf(p), func(url string) bool {
		return files.Within(files.LocalPath(url), s.defaultDir())
	})
}

// urlsOf are the locations of data that a plan names.
func urlsOf(p plan.Plan) []string {
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
	for _, side := range p.Sides {
		all = append(all, side.History)
	}
	if p.PAI != nil {
		all = append(all, p.PAI.DefaultFS, p.PAI.DataDir, p.PAI.OutputDir)
	}
	all = append(all, p.Checkpoint.Sync)
	return slices.DeleteFunc(all, func(url string) bool { return url == "" })
}

// Folders are the folders of this host that a container needs for the data of its process.
func (s *Stores) Folders(p plan.Plan) []string {
	var dirs []string
	if s.usesDefault(p) {
		dirs = append(dirs, s.defaultDir())
	}
	top, urls := s.DefaultFS.Local(), urlsOf(p)
	switch {
	case top == "" || top == "/" || files.Within(top, s.WorkDir):
		return dirs
	case files.Within(s.WorkDir, top): // as a whole it would cover the run's own mounts
		return append(dirs, s.foldersIn(top, urls)...)
	}
	used := slices.ContainsFunc(urls, func(url string) bool { return files.Within(files.LocalPath(url), top) })
	if used && files.IsFolder(top) {
		return append(dirs, top)
	}
	return dirs
}

// foldersIn are the folders of a filesystem that hold data, where the work folder lies in that filesystem too. A folder
// that the process's user could not enter is none, nor is a link out of the filesystem: a mount would lead past that.
func (s *Stores) foldersIn(top string, urls []string) []string {
	var dirs []string
	user, within := files.As(s.Owner()), files.Resolve(top)
	for _, url := range urls {
		path := files.LocalPath(url)
		apart := !files.Within(path, s.WorkDir) && !files.Within(s.WorkDir, path)
		if path == "" || path == top || !files.Within(path, top) || !apart || !files.IsFolder(path) {
			continue
		}
		truth := files.Resolve(path)
		if files.Within(truth, within) && user.Shut(truth) == "" && !slices.Contains(dirs, path) {
			dirs = append(dirs, path)
		}
	}
	slices.Sort(dirs) // a folder comes before those in it
	return dirs
}
