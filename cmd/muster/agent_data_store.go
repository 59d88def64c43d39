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

	"github.com/muster-agent/muster/packages/fetch"
	"github.com/muster-agent/muster/shim/fault"
	"github.com/muster-agent/muster/shim/plan"
	"github.com/muster-agent/muster/shim/stage"
)

// ownStore makes the default store in the work folder, for the process's user. What is in it stays whose it is.
func (r stageRoom) ownStore(p plan.Plan, work workRoot) error {
	if !r.usesStore(p) {
		return nil
	}
	folder, err := work.folder(r.storeDir())
	if err != nil {
		return err
	}
	if u := r.credential(); u != nil {
		err = folder.Lchown(".", int(u.UID), int(u.GID))
	}
	return errors.Join(err, folder.Close())
}

// storeDir is the folder that is the default filesystem where nothing names another.
func (a *agent) storeDir() string {
	return strings.TrimPrefix(strings.ReplaceAll(plan.DefaultStore, plan.Work, a.workDir), "file:")
}

// usesStore tells whether a path of the plan's data is in the store in the work folder.
func (a *agent) usesStore(p plan.Plan) bool {
	return slices.ContainsFunc(dataURLs(p), func(url string) bool { return within(localPath(url), a.storeDir()) })
}

// dataURLs are the places that a plan names.
func dataURLs(p plan.Plan) []string {
	var all []string
	for _, item := range p.Stage {
		if fromStore(item) {
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

// localPath is the path of a file: URL, or of a path alone; empty: it is no file of this machine.
func localPath(url string) string {
	scheme := fetch.SchemeOf(url)
	if scheme != "" && !strings.EqualFold(scheme, "file:") {
		return ""
	}
	path := strings.TrimPrefix(url[len(scheme):], "//localhost")
	return filepath.Clean("/" + strings.TrimLeft(path, "/"))
}

// openStore finds the store of a path that the definition names, with the rights that its process has.
func (a *agent) openStore(ctx context.Context, p plan.Plan, url string, write bool) (stage.Store, string, error) {
	store, path, err := a.stores(p).Open(ctx, url)
	if err != nil {
		return nil, "", err
	}
	if localPath(url) == "" { // the store itself knows who may do what
		return store, path, nil
	}
	top, err := a.admitted(p, path, write)
	if err != nil {
		return nil, "", err
	}
	if top.name == "" {
		return asUser(store, a.user), path, nil
	}
	store, err = top.open(write)
	if err != nil {
		return nil, "", err
	}
	if !within(path, top.name) { // a link led there
		path = trueName(path)
	}
	return store, path, nil
}

// reach is the folder of the host that is as far as a definition leads an agent that is root: the links in it may be of its
// process's own making. The zero value: what its process could do itself is what is done.
type reach struct {
	name string // as paths name it
	real string // without links
}

func reachOf(name string) reach { return reach{filepath.Clean(name), trueName(name)} }

func (r reach) open(write bool) (stage.Store, error) {
	if _, err := os.Lstat(r.real); write && errors.Is(err, fs.ErrNotExist) { // a folder of the work folder
		above, err := os.OpenRoot(filepath.Dir(r.real))
		if err != nil {
			return nil, err
		}
		err = above.MkdirAll(filepath.Base(r.real), 0o755)
		if err = errors.Join(err, above.Close()); err != nil {
			return nil, err
		}
	}
	root, err := os.OpenRoot(r.real)
	if err != nil {
		return nil, err
	}
	return stage.Files(fetch.Below{Root: root, Name: r.name, Real: r.real}), nil
}

// admitted refuses a path of the host that a definition may not name: one that its process could not reach by itself. An
// agent that is root does nothing there for it, and goes no further than the folder that holds it.
func (a *agent) admitted(p plan.Plan, path string, write bool) (reach, error) {
	truth := trueName(path)
	work := trueName(a.workDir)
	own := p.Root.Kind == plan.RootHost || os.Geteuid() != 0 || a.user != nil && a.user.UID != 0
	if within(truth, work) {
		name, _, _ := strings.Cut(strings.TrimPrefix(truth, work+"/"), "/")
		if truth == work || slices.Contains(kept, name) || name[0] == '.' {
			return reach{}, fault.Definition(fmt.Errorf("%s is muster's own, want another place", truth))
		}
		if own {
			return reach{}, nil
		}
		return reachOf(filepath.Join(a.workDir, name)), nil
	}
	if own {
		return reach{}, nil
	}
	if top := a.filesystem.Local(); top != "" && top != "/" && within(truth, trueName(top)) {
		return reachOf(top), nil
	}
	for _, m := range a.policy.Mounts {
		if within(truth, trueName(m.Path)) && !(write && m.ReadOnly) {
			return reachOf(m.Path), nil
		}
	}
	if seen := p.Root.Kind == plan.RootReadOnly || p.Root.Kind == plan.RootOverlay; seen && !write && !ownInContainer(truth) {
		first, _, _ := strings.Cut(strings.TrimPrefix(truth, "/"), "/")
		return reachOf("/" + first), nil
	}
	return reach{}, fault.NotPermitted(fmt.Errorf("%s: the job's container does not have it, and its process is root: set muster.user, name a filesystem that holds it by --default-fs, or let the operator add it to mounts in %s",
		truth, a.policy.File))
}

// trueName is a path without links, as far as it is there.
func trueName(path string) string {
	path = filepath.Clean(path)
	for at, rest := path, ""; ; {
		if found, err := filepath.EvalSymlinks(at); err == nil {
			return filepath.Join(found, rest)
		}
		if at == "/" || at == "." {
			return path
		}
		at, rest = filepath.Dir(at), filepath.Join(filepath.Base(at), rest)
	}
}

// visible refuses a path of the host that the process itself is told to use and does not have.
func (a *agent) visible(p plan.Plan, path string, write bool) error {
	readable := !write && !ownInContainer(path) && (p.Root.Kind == plan.RootReadOnly || p.Root.Kind == plan.RootOverlay)
	if p.Root.Kind == plan.RootHost || readable || within(path, a.workDir) {
		return nil
	}
	if top := a.filesystem.Local(); top != "" && top != "/" && within(path, top) {
		return nil
	}
	for _, m := range a.policy.Mounts {
		if within(path, m.To) && !(write && m.ReadOnly) {
			return nil
		}
	}
	return fault.NotPermitted(fmt.Errorf("%s is not in the container: name a filesystem that holds it by --default-fs, or let the operator add it to mounts in %s", path, a.policy.File))
}

// dataFolders are the folders of the host that a container needs for what its process is told of.
func (a *agent) dataFolders(p plan.Plan) []string {
	var dirs []string
	if a.usesStore(p) {
		dirs = append(dirs, a.storeDir())
	}
	top := a.filesystem.Local()
	switch {
	case top == "" || top == "/" || within(top, a.workDir):
		return dirs
	case within(a.workDir, top): // mounted whole it would lie over the run's own mounts
		return append(dirs, a.partsOf(top, dataURLs(p))...)
	case slices.ContainsFunc(dataURLs(p), func(url string) bool { return within(localPath(url), top) }) && isFolder(top):
		return append(dirs, top)
	}
	return dirs
}

// partsOf are the folders of a filesystem that data is in, beside the work folder that lies there too.
func (a *agent) partsOf(top string, urls []string) []string {
	var dirs []string
	for _, url := range urls {
		path := localPath(url)
		apart := !within(path, a.workDir) && !within(a.workDir, path)
		if path != "" && path != top && within(path, top) && apart && isFolder(path) && !slices.Contains(dirs, path) {
			dirs = append(dirs, path)
		}
	}
	slices.Sort(dirs) // what lies in another comes after it
	return dirs
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
