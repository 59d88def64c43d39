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

// pidFiles are those in the instance's own folders, pid_file first.
func (p *Process) pidFiles(s *plan.Script) []script.PID {
	var found []script.PID
	for _, path := range p.pidPaths(s) {
		text, err := p.readOwn(path)
		if err != nil {
			continue
		}
		if pid, ok := script.ParsePID(text); ok {
			found = append(found, script.PID{File: path, PID: pid})
		} else {
			p.Log.Warn("pid file", "file", path, "err", "got no number")
		}
	}
	return found
}

// pidPaths are where pid files may be: what the configuration names, and all of its folder for them.
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

// mostPIDFiles is how many entries of the folder for them are looked at.
const mostPIDFiles = 256

// ownFolderOf opens whichever of the instance's folders holds a path, and names it from there on. A link in it that
// leads to another instance's, or to the package that all share, leads nowhere.
func (p *Process) ownFolderOf(path string) (files.Folder, string, error) {
	for _, dir := range []string{p.Plan.Process.Folder, p.LogDir} {
		if !files.Within(path, dir) {
			continue
		}
		work, err := files.As(nil).Below(dir)
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

// mostPID is more than a pid file has, in bytes.
const mostPID = 64

// readOwn reads a small file in the instance's folders. Its process may put something else in its place at any moment:
// a pipe that nobody fills must not hold the agent up.
func (p *Process) readOwn(path string) (string, error) {
	work, name, err := p.ownFolderOf(path)
	if err != nil {
		return "", err
	}
	defer work.Close()
	return work.Read(name, mostPID)
}

// removePIDs takes the pid files of the last start away: all that they name is proved gone, and their numbers may be
// others' by now.
func (p *Process) removePIDs(s *plan.Script) {
	for _, path := range p.pidPaths(s) {
		work, name, err := p.ownFolderOf(path)
		if err != nil {
			continue
		}
		if err := errors.Join(work.Remove(name), work.Close()); err != nil && !errors.Is(err, os.ErrNotExist) {
			p.Log.Warn("take a pid file away", "err", err)
		}
	}
}
