package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/muster-agent/muster/shim/files"
	"github.com/muster-agent/muster/shim/plan"
	"github.com/muster-agent/muster/shim/script"
)

// innerPID is a process's number in the innermost pid namespace that it is in; 0 when it is gone already (proc(5), NSpid).
func innerPID(pid int) int {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if numbers, ok := strings.CutPrefix(line, "NSpid:"); ok {
			all := strings.Fields(numbers)
			n, err := strconv.Atoi(all[len(all)-1])
			if err != nil {
				return 0
			}
			return n
		}
	}
	return 0
}

// pidFiles are those in the instance's own folders, pid_file first.
func (a *agent) pidFiles(s *plan.Script) []script.PID {
	var found []script.PID
	for _, path := range a.pidPaths(s) {
		text, err := a.readOwn(path)
		if err != nil {
			continue
		}
		if pid, ok := script.ParsePID(text); ok {
			found = append(found, script.PID{File: path, PID: pid})
		} else {
			a.log.Warn("pid file", "file", path, "err", "got no number")
		}
	}
	return found
}

// pidPaths are where pid files may be: what the configuration names, and all of its folder for them.
func (a *agent) pidPaths(s *plan.Script) []string {
	paths := []string{}
	if own := script.PIDFile(s); own != "" {
		paths = append(paths, filepath.Clean(own))
	}
	dir := script.PIDFolder(s)
	work, name, err := a.ownFolderOf(dir)
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

// ownFolderOf opens whichever of the instance's folders holds a path, and names it from there on. A link in it that leads to
// another instance's, or to the package that all share, leads nowhere.
func (a *agent) ownFolderOf(path string) (files.Folder, string, error) {
	for _, dir := range []string{a.currentPlan().Process.Folder, a.instanceLogs()} {
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

// readOwn reads a small file in the instance's folders. Its process may put something else in its place at any moment: a
// pipe that nobody fills must not hold the agent up.
func (a *agent) readOwn(path string) (string, error) {
	work, name, err := a.ownFolderOf(path)
	if err != nil {
		return "", err
	}
	defer work.Close()
	return work.Read(name, mostPID)
}

// forgetPIDs takes the pid files of the last start away: all that they name is proved gone, and their numbers may be
// others' by now.
func (a *agent) forgetPIDs(s *plan.Script) {
	for _, path := range a.pidPaths(s) {
		work, name, err := a.ownFolderOf(path)
		if err != nil {
			continue
		}
		if err := errors.Join(work.Remove(name), work.Close()); err != nil && !errors.Is(err, os.ErrNotExist) {
			a.log.Warn("take a pid file away", "err", err)
		}
	}
}
