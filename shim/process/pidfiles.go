package process

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/muster-agent/muster/shim/files"
	"github.com/muster-agent/muster/shim/plan"
	"github.com/muster-agent/muster/shim/script"
)

// pidFiles are the pid files in the instance's own folders, pid_file first; warn: say which cannot be used.
func (p *Process) pidFiles(s *plan.Script, warn bool) []script.PID {
	var found []script.PID
	main := filepath.Clean(script.PIDFile(s)) // "." where the configuration names none
	for _, path := range p.pidPaths(s) {
		text, err := p.readOwn(path)
		if err != nil {
			continue
		}
		if pid, ok := script.ParsePID(text); ok {
			found = append(found, script.PID{File: path, PID: pid, Main: path == main})
		} else if warn {
			p.Log.Warn("pid file has no number", "file", path)
		}
	}
	return found
}

// pidPaths are where pid files may be: the files that the configuration names, and all files of its folder for them.
func (p *Process) pidPaths(s *plan.Script) []string {
	paths := []string{}
	if own := script.PIDFile(s); own != "" {
		paths = append(paths, filepath.Clean(own))
	}
	dir := script.PIDFolder(s)
	work, name, err := p.ownFolderOf(dir)
	if err != nil {
		return paths
	}
	defer work.Close()
	folder, err := work.OpenRoot(name)
	if err != nil {
		return paths
	}
	defer folder.Close()
	names, err := files.Folder{Root: folder}.Names(mostPIDFiles)
	if err != nil {
		return paths
	}
	var more []string
	for _, name := range names {
		if path := filepath.Join(dir, name); strings.HasSuffix(path, ".pid") && !slices.Contains(paths, path) {
			more = append(more, path)
		}
	}
	slices.Sort(more)
	return append(paths, more...)
}

// mostPIDFiles is how many entries of that folder are read.
const mostPIDFiles = 256

// ownFolderOf opens the folder of the instance that holds a path, and names the path in it. A link to another
// instance's folder, or to the shared package, leads nowhere.
func (p *Process) ownFolderOf(path string) (files.Folder, string, error) {
	for _, dir := range []string{p.Plan.Process.Folder, p.LogDir} {
		if !files.Within(path, dir) {
			continue
		}
		work, err := files.Below(dir)
		if err != nil {
			return files.Folder{}, "", err
		}
		name, err := work.Rel(path)
		if err != nil {
			return files.Folder{}, "", errors.Join(err, work.Close())
		}
		return work, name, nil
	}
	return files.Folder{}, "", fmt.Errorf("%s is in no folder of the instance", path)
}

// mostPID is the limit of a pid file, in bytes.
const mostPID = 64

// readOwn reads a small file in the instance's folders. The process may replace it at any moment: a pipe without a
// writer must not block the agent.
func (p *Process) readOwn(path string) (string, error) {
	work, name, err := p.ownFolderOf(path)
	if err != nil {
		return "", err
	}
	defer work.Close()
	return work.Read(name, mostPID)
}

// removePIDs removes the pid files of the last start: their processes have ended, and the numbers may belong to others
// now.
func (p *Process) removePIDs(s *plan.Script) {
	for _, path := range p.pidPaths(s) {
		work, name, err := p.ownFolderOf(path)
		if err != nil {
			continue
		}
		if err := errors.Join(work.Remove(name), work.Close()); err != nil && !errors.Is(err, os.ErrNotExist) {
			p.Log.Warn("pid file not removed", "err", err)
		}
	}
}
