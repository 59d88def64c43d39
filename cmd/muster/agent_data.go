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
	"time"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/plan"
	"github.com/muster-agent/muster/shim/sandbox/container"
	"github.com/muster-agent/muster/shim/stage"
)

// dataError is data that could not be brought or left, and not for what the definition says of it: class data.
type dataError struct{ error }

func (e dataError) Unwrap() error { return e.error }

// stageTimeout is that staging took longer than it may.
type stageTimeout struct{ limit time.Duration }

func (e stageTimeout) Error() string {
	return fmt.Sprintf("not done after %s (muster.stage.timeout)", e.limit)
}

// dataFault sorts what went wrong: what the definition can mend is its own fault.
func dataFault(err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[stageTimeout](err); ok {
		return err
	}
	if _, ok := errors.AsType[definitionError](err); ok {
		return err
	}
	if _, ok := errors.AsType[notPermitted](err); ok {
		return err
	}
	_, taken := errors.AsType[*stage.TakenError](err)
	_, twice := errors.AsType[*stage.NameError](err)
	if taken || twice || errors.Is(err, stage.ErrNoStore) {
		return definitionError{err}
	}
	return dataError{err}
}

// fromStore tells a stage item that comes from a store, or lies there.
func fromStore(item plan.StageItem) bool {
	return slices.Contains([]string{plan.StageCode, plan.StageCodeBeside, plan.StageOutput}, item.Kind)
}

// bringData brings what the plan reads, and makes room for what it leaves.
func (r stageRoom) bringData(ctx context.Context, p plan.Plan, in registry.Instance, work workRoot) error {
	if limit := seconds(p.StageTimeout); limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, limit, stageTimeout{limit})
		defer cancel()
	}
	if err := r.ownStore(p, work); err != nil {
		return err
	}
	for _, item := range p.Stage {
		var err error
		switch item.Kind {
		case plan.StageCode, plan.StageCodeBeside:
			err = r.bringCode(ctx, p, item, work)
		case plan.StageOutput:
			err = r.makeOutput(ctx, p, item)
		}
		if err != nil {
			return dataFault(fmt.Errorf("%s %s: %w", item.Name, item.From, err))
		}
	}
	if p.PAI != nil {
		r.checkDataDir(p.PAI.DataDir)
	}
	if p.Inputs == nil && p.Outputs == nil {
		return nil
	}
	folder, err := work.folder(p.Process.Folder)
	if err != nil {
		return err
	}
	err = r.bringInputs(ctx, p, folder)
	if err == nil {
		err = r.roomForOutputs(ctx, p, in, work, folder)
	}
	return dataFault(errors.Join(err, folder.Close()))
}

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
	return slices.DeleteFunc(all, func(url string) bool { return url == "" })
}

// localPath is the path of a file: URL, or of a path alone; empty: it is no file of this machine.
func localPath(url string) string {
	scheme := schemeForm.FindString(url)
	if scheme != "" && !strings.EqualFold(scheme, "file:") {
		return ""
	}
	path := strings.TrimPrefix(url[len(scheme):], "//localhost")
	return filepath.Clean("/" + strings.TrimLeft(path, "/"))
}

// openStore finds the store of a path that the definition names, with the rights that its process has.
func (a *agent) openStore(ctx context.Context, p plan.Plan, url string, write bool) (stage.Store, string, error) {
	store, path, err := stage.Open(ctx, url)
	if err != nil {
		return nil, "", err
	}
	if localPath(url) != "" {
		if err := a.admitted(p, path, write); err != nil {
			return nil, "", err
		}
	}
	return asUser(store, a.user), path, nil
}

// admitted refuses a path of the host that a definition may not name: one that its process could not reach by itself. An
// agent that is root does nothing there for it.
func (a *agent) admitted(p plan.Plan, path string, write bool) error {
	path = trueName(path)
	work := trueName(a.workDir)
	if within(path, work) {
		if name, _, _ := strings.Cut(strings.TrimPrefix(path, work+"/"), "/"); path == work || slices.Contains(kept, name) || name[0] == '.' {
			return definitionError{fmt.Errorf("%s is muster's own, want another place", path)}
		}
		return nil
	}
	seen := !write && (p.Root.Kind == plan.RootReadOnly || p.Root.Kind == plan.RootOverlay)
	if p.Root.Kind == plan.RootHost || seen || os.Geteuid() != 0 || a.user != nil && a.user.UID != 0 {
		return nil
	}
	if top := a.filesystem.local(); top != "" && within(path, trueName(top)) {
		return nil
	}
	for _, m := range a.policy.Mounts {
		if within(path, trueName(m.Path)) && !(write && m.ReadOnly) {
			return nil
		}
	}
	return notPermitted{fmt.Errorf("%s: the job's container does not have it, and its process is root: set muster.user, name a filesystem that holds it by --default-fs, or let the operator add it to mounts in %s",
		path, a.policy.path)}
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
	first, _, _ := strings.Cut(strings.TrimPrefix(filepath.Clean(path), "/"), "/")
	private := slices.Contains([]string{"proc", "sys", "dev", "run", "tmp"}, first) || within(path, "/var/tmp") // a container's own
	readable := !write && !private && (p.Root.Kind == plan.RootReadOnly || p.Root.Kind == plan.RootOverlay)
	if p.Root.Kind == plan.RootHost || readable || within(path, a.workDir) {
		return nil
	}
	if top := a.filesystem.local(); top != "" && top != "/" && within(path, top) {
		return nil
	}
	for _, m := range a.policy.Mounts {
		if within(path, m.To) && !(write && m.ReadOnly) {
			return nil
		}
	}
	return notPermitted{fmt.Errorf("%s is not in the container: name a filesystem that holds it by --default-fs, or let the operator add it to mounts in %s", path, a.policy.path)}
}

// dataFolders are the folders of the host that a container needs for what its process is told of.
func (a *agent) dataFolders(p plan.Plan) []string {
	var dirs []string
	if a.usesStore(p) {
		dirs = append(dirs, a.storeDir())
	}
	top := a.filesystem.local()
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

// codeMounts keep what codeDir brought as it came.
func codeMounts(p plan.Plan) []container.Mount {
	var all []container.Mount
	for _, item := range p.Stage {
		if item.Kind == plan.StageCodeBeside {
			all = append(all, container.Mount{From: item.To, To: item.To, ReadOnly: true, Options: inert})
		}
	}
	return all
}

// checkDataDir warns of a folder that the tasks are told of and that is not there. It may come yet.
func (r stageRoom) checkDataDir(url string) {
	path := localPath(url)
	if url == "" || path == "" {
		return
	}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		r.log.Warn("dataDir is not there", "path", path)
	}
}

// makeOutput makes the folder that a task is told to leave its results in.
func (r stageRoom) makeOutput(ctx context.Context, p plan.Plan, item plan.StageItem) error {
	store, path, err := r.openStore(ctx, p, item.From, true)
	if errors.Is(err, stage.ErrNoStore) { // the plan has told
		return nil
	}
	if err != nil {
		return err
	}
	if localPath(item.From) != "" {
		if err := r.visible(p, path, true); err != nil {
			return err
		}
	}
	return store.MkdirAll(ctx, path)
}

// mostCode is what PAI takes of a job's own files, in bytes.
const mostCode = 200_000_000

// bringCode brings codeDir to where the plan says, and beside it where the generation of PAI has it so.
func (r stageRoom) bringCode(ctx context.Context, p plan.Plan, item plan.StageItem, work workRoot) error {
	store, path, err := r.openStore(ctx, p, item.From, false)
	if err != nil {
		return err
	}
	top, err := store.Stat(ctx, path)
	if errors.Is(err, fs.ErrNotExist) {
		return definitionError{errors.New("it is not there, want a folder; check codeDir")}
	}
	if err != nil {
		return err
	}
	files, err := stage.Tree(ctx, store, top)
	if err != nil {
		return err
	}
	files = r.notOfTheRun(path, files)
	var bytes int64
	for _, f := range files {
		bytes += f.Size
	}
	if bytes > mostCode {
		return definitionError{fmt.Errorf("got %d bytes, want at most %d; what is larger goes where dataDir is", bytes, mostCode)}
	}
	copies := stage.Below(path, files)
	if !top.Dir && item.Kind == plan.StageCode { // a file alone: it has the name itself
		copies = []stage.Copy{{From: files[0], To: filepath.Base(path)}}
	}
	if item.Kind == plan.StageCodeBeside {
		for _, c := range copies {
			if first, _, _ := strings.Cut(c.To, "/"); slices.Contains([]string{"app", "code", "roster.json"}, first) {
				return definitionError{fmt.Errorf("it has %s, which is muster's own name where it is copied to; want another name", first)}
			}
		}
	}
	name, err := work.name(item.To)
	if err != nil {
		return err
	}
	return r.placeCode(ctx, p, item, work, name, copies)
}

// notOfTheRun leaves out what lies in the work folder, where a folder around that is read: what the agents lay out
// there is no part of it, and changes under the reader's hand.
func (a *agent) notOfTheRun(read string, files []stage.File) []stage.File {
	truth, work := trueName(read), trueName(a.workDir)
	if within(truth, work) {
		return files
	}
	return slices.DeleteFunc(files, func(f stage.File) bool {
		path := f.Path
		if rest, ok := strings.CutPrefix(path, read); ok {
			path = truth + rest
		}
		return within(path, work)
	})
}

// placeCode puts the files at the item's name, all of them or none, and then beside it.
func (r stageRoom) placeCode(ctx context.Context, p plan.Plan, item plan.StageItem, work workRoot, name string, copies []stage.Copy) (err error) {
	first, _, _ := strings.Cut(name, "/")
	tmp := ".stage-" + first // one agent has this index: what is there is of one that was killed
	if err := errors.Join(work.RemoveAll(tmp), work.Mkdir(tmp, 0o700), work.Mkdir(tmp+"/whole", 0o755)); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, work.RemoveAll(tmp)) }()
	whole, err := work.OpenRoot(tmp + "/whole")
	if err != nil {
		return err
	}
	err = stage.Bring(ctx, whole, copies, stage.Parallel)
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
	return r.codeBeside(ctx, p, item, work, copies)
}

// codeBeside copies what has come into the folder where the process starts, where it may be changed.
func (r stageRoom) codeBeside(ctx context.Context, p plan.Plan, item plan.StageItem, work workRoot, copies []stage.Copy) (err error) {
	code, err := work.folder(item.To)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, code.Close()) }()
	store, _, err := stage.Open(ctx, item.To)
	if err != nil {
		return err
	}
	again := slices.Clone(copies)
	for i, c := range copies {
		again[i].From = stage.File{Store: store, Path: filepath.Join(item.To, c.To), Size: c.From.Size}
	}
	folder, err := work.folder(p.Process.Folder)
	if err != nil {
		return err
	}
	err = stage.Bring(ctx, folder, again, stage.Parallel)
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

// bringInputs brings the instance's share of each input, or keeps the list of it for the start.
func (r stageRoom) bringInputs(ctx context.Context, p plan.Plan, folder *os.Root) error {
	in := p.Inputs
	if in == nil {
		return nil
	}
	begun, shares := time.Now(), map[string][]stage.File{}
	var copies []stage.Copy
	for _, one := range in.From {
		files, err := r.listInput(ctx, p, one)
		if err != nil {
			return fmt.Errorf("input %s: %w", one.Name, err)
		}
		share := files
		if in.Strategy == appdef.StrategyDownload || !in.Whole {
			share = stage.Assign(files, in.Workers, in.Worker)
			r.tellIdle(in, one.Name, len(files))
		}
		shares[one.Name] = share
		if in.Strategy != appdef.StrategyDownload {
			continue
		}
		named := stage.Numbered(one.Name, share, begun.UnixMilli())
		if !in.Rename {
			if named, err = stage.Names(one.Name, share); err != nil {
				return err
			}
		}
		copies = append(copies, named...)
	}
	if in.Strategy == appdef.StrategyPlaceholder {
		return r.keepList(p, shares)
	}
	for _, one := range in.From { // what an earlier agent brought, or began to
		if err := folder.RemoveAll(one.Name); err != nil {
			return err
		}
	}
	if err := stage.Bring(ctx, folder, copies, stage.Parallel); err != nil {
		return err
	}
	var bytes int64
	for _, c := range copies {
		bytes += max(c.From.Size, 0)
	}
	r.log.Info("inputs are here", "files", len(copies), "bytes", bytes, "took", time.Since(begun).Round(time.Millisecond))
	return nil
}

// listInput lists the files of one input in their order.
func (r stageRoom) listInput(ctx context.Context, p plan.Plan, one plan.Input) ([]stage.File, error) {
	var all []stage.File
	seen := map[string]bool{}
	for _, url := range one.From {
		store, path, err := r.openStore(ctx, p, url, false)
		if err != nil {
			return nil, err
		}
		files, err := stage.List(ctx, store, path)
		files = r.notOfTheRun(path, files)
		if err != nil {
			return nil, err
		}
		for _, f := range files {
			if !seen[f.Path] {
				seen[f.Path] = true
				all = append(all, f)
			}
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("no file in %s", strings.Join(one.From, ", "))
	}
	return all, nil
}

// mostNamed is how many instances a warning names.
const mostNamed = 10

// tellIdle names the instances that an input leaves without a file: the first reader all of them, each of them itself.
func (r stageRoom) tellIdle(in *plan.Inputs, name string, files int) {
	idle := stage.Idle(files, in.Workers)
	if len(idle) == 0 || in.Worker != 0 && !slices.Contains(idle, in.Worker) {
		return
	}
	app := r.app.App.WithCounts(r.countsInForce())
	readers := plan.Readers(&app, r.loop.State().Instance.Component)
	var names []string
	for _, i := range idle {
		if i < len(readers) {
			names = append(names, readers[i].String())
		}
	}
	if more := len(names) - mostNamed; more > 0 {
		names = append(names[:mostNamed], fmt.Sprintf("and %d more", more))
	}
	r.log.Warn("fewer files than instances", "input", name, "files", files, "instances", in.Workers, "idle", strings.Join(names, ", "))
}

// keepList remembers what the process is told of its files.
func (r stageRoom) keepList(p plan.Plan, shares map[string][]stage.File) error {
	for _, share := range shares {
		for _, f := range share {
			if err := r.visible(p, f.Path, false); err != nil {
				return err
			}
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.inputList = stage.Placeholder(shares)
	return nil
}

// tellInputs says to a process which files are its own: by a variable, or by a file where the variables grow too long.
func (a *agent) tellInputs(start *plan.Start) {
	a.mu.Lock()
	list := a.inputList
	a.mu.Unlock()
	if list == "" {
		return
	}
	start.Env[stage.ListVariable] = list
	if stage.TooLong(start.Env) {
		delete(start.Env, stage.ListVariable)
		start.Files[stage.ListFile] = list + "\n"
	}
}

// refuseData tells before anything is made what data this muster cannot bring.
func refuseData(app appdef.App, vars map[string]string, found filesystem) error {
	var bad appdef.Problems
	for _, c := range app.Components {
		if c.Instances == 0 || len(c.Settings.Inputs.From)+len(c.Settings.Outputs.To) == 0 && app.Settings.PAI.Version == "" {
			continue
		}
		request := plan.Request{Component: c.Name, Digest: "-", Allocation: plan.Allocation{User: someUser, Vars: vars}, Starts: true}
		found.into(&request)
		_, problems := plan.Build(app, request)
		for _, p := range problems.Errors() {
			if !slices.Contains(bad, p) {
				bad = append(bad, p)
			}
		}
	}
	return asError(bad)
}
