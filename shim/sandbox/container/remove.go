package container

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/opencontainers/runc/libcontainer"
	"golang.org/x/sys/unix"

	"github.com/muster-agent/muster/shim/ownfolder"
	"github.com/muster-agent/muster/shim/sandbox/cgroup"
)

// Clear removes what a container in dir has left: its processes, its cgroup, its folder. Nothing to remove is no error.
// A container that is alive is killed: dir belongs to one instance alone. A folder in which no container was made is an
// error and stays as it is.
func Clear(ctx context.Context, dir string) error {
	if !filepath.IsAbs(dir) || filepath.Clean(dir) == "/" {
		return fmt.Errorf("clear container: folder %q: %w", dir, errNotOurs)
	}
	at, err := filepath.EvalSymlinks(dir)
	if errors.Is(err, fs.ErrNotExist) { // its part in memory may be there all the same
		at, err = filepath.Clean(dir), nil
	}
	if err == nil {
		err = clearAll(ctx, at)
	}
	if err != nil {
		return fmt.Errorf("clear container: %w", err)
	}
	return nil
}

// errNotOurs says that a folder is no container's.
var errNotOurs = errors.New("no container's folder")

// marked tells whether Run has made the folder, or the folder holds nothing.
func marked(dir string) (bool, error) {
	if _, err := os.Lstat(filepath.Join(dir, markName)); err == nil {
		return true, nil
	}
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	return len(entries) == 0, err
}

// own refuses a folder in which another user could have written a mark and a record: what they name would be killed and
// removed at that user's word.
func own(dir string) error {
	for _, name := range []string{markName, recordName} {
		if err := ownfolder.Own(filepath.Dir(dir), filepath.Join(dir, name)); err != nil {
			return fmt.Errorf("%w: remove it, or give --work-dir another: %w", err, errNotOurs)
		}
	}
	return nil
}

func clearAll(ctx context.Context, dir string) error {
	switch mine, err := marked(dir); {
	case err != nil:
		return err
	case !mine:
		return fmt.Errorf("%s: %w", dir, errNotOurs)
	}
	if err := own(dir); err != nil {
		return err
	}
	paths, inodes, err := readRecord(filepath.Join(dir, recordName))
	if err != nil {
		return err
	}
	for _, folder := range append(memoryDirs(dir), dir) {
		if err := clearState(ctx, filepath.Join(folder, stateName), taken(inodes)); err != nil {
			return err
		}
	}
	if err := clearRecord(ctx, paths, inodes); err != nil {
		return err
	}
	for _, folder := range memoryDirs(dir) {
		if err := removeTree(folder); err != nil {
			return err
		}
	}
	return removeMarked(dir)
}

// removeMarked removes a container's folder, its mark last: after a failure the rest can still be removed.
func removeMarked(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, e := range entries {
		if e.Name() == markName {
			continue
		}
		if err := removeTree(filepath.Join(dir, e.Name())); err != nil {
			return err
		}
	}
	return removeTree(dir)
}

// readRecord reads the paths of a container's cgroup, and their numbers, which records of earlier builds lack.
func readRecord(path string) (paths []string, inodes map[string]uint64, err error) {
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	if json.Unmarshal(b, &inodes) != nil {
		return strings.Fields(string(b)), nil, nil
	}
	return slices.Sorted(maps.Keys(inodes)), inodes, nil
}

// taken tells that another cgroup has a path by now: it is another container's.
func taken(inodes map[string]uint64) bool {
	now := cgroup.Inodes(slices.Collect(maps.Keys(inodes)))
	for path, inode := range now {
		if inode != inodes[path] {
			return true
		}
	}
	return false
}

// clearRecord removes the cgroup of a container that was never finished.
func clearRecord(ctx context.Context, paths []string, inodes map[string]uint64) error {
	ctx, cancel := context.WithTimeout(ctx, killPatience)
	defer cancel()
	return cgroup.RemoveAt(ctx, paths, inodes)
}

// clearState ends the containers that libcontainer knows there. Where another one has a path of their cgroups, these
// are left to the record: libcontainer goes by paths alone.
func clearState(ctx context.Context, state string, taken bool) error {
	entries, err := os.ReadDir(state)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		c, err := libcontainer.Load(state, e.Name())
		if errors.Is(err, libcontainer.ErrNotExist) {
			continue // it was never made: its first process ends by itself when its maker is gone
		}
		if err != nil {
			return err
		}
		if err := end(ctx, c); err != nil {
			return err
		}
		if taken {
			continue
		}
		if err := destroy(c, cgroupsOf(c)); err != nil {
			return err
		}
	}
	return nil
}

const killPatience = 10 * time.Second

// end kills the first process, which is no child that this process could wait for.
func end(ctx context.Context, c *libcontainer.Container) error {
	state, err := c.State()
	if err != nil {
		return err
	}
	// Opened before the second look: the number may be given to another process at any time.
	fd, err := unix.PidfdOpen(state.InitProcessPid, 0)
	if errors.Is(err, unix.ESRCH) || errors.Is(err, unix.EINVAL) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("first process %d: %w", state.InitProcessPid, err)
	}
	defer unix.Close(fd)
	if status, err := c.Status(); err != nil || status == libcontainer.Stopped {
		return err
	}
	if err := unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("kill first process %d: %w", state.InitProcessPid, err)
	}
	ctx, cancel := context.WithTimeout(ctx, killPatience)
	defer cancel()
	return awaitEnd(ctx, fd, state.InitProcessPid)
}

func awaitEnd(ctx context.Context, fd, pid int) error {
	p := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	for ctx.Err() == nil {
		n, err := unix.Poll(p, 100)
		if n > 0 {
			return nil
		}
		if err != nil && !errors.Is(err, unix.EINTR) {
			return err
		}
	}
	return fmt.Errorf("first process %d does not die", pid)
}

// removeTree removes dir and all below it. It follows no link and enters no mount: a folder of the host that is
// mounted there is an error and stays as it is.
func removeTree(dir string) error {
	parent, err := os.Open(filepath.Dir(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer parent.Close()
	return removeAt(int(parent.Fd()), filepath.Base(dir), dir)
}

func removeAt(parent int, name, path string) error {
	fail := func(act string, err error) error { return &fs.PathError{Op: act, Path: path, Err: err} }
	err := unix.Unlinkat(parent, name, 0)
	if err == nil || errors.Is(err, unix.ENOENT) {
		return nil
	}
	if !errors.Is(err, unix.EISDIR) && !errors.Is(err, unix.EPERM) {
		return fail("remove", err)
	}
	if unix.Unlinkat(parent, name, unix.AT_REMOVEDIR) == nil {
		return nil
	}
	fd, err := openDir(parent, name)
	if err != nil {
		return fail("open", err)
	}
	folder := os.NewFile(uintptr(fd), path)
	defer folder.Close()
	names, err := folder.Readdirnames(-1)
	if err != nil {
		return err
	}
	for _, child := range names {
		if err := removeAt(fd, child, filepath.Join(path, child)); err != nil {
			return err
		}
	}
	if err := unix.Unlinkat(parent, name, unix.AT_REMOVEDIR); err != nil {
		return fail("remove", err)
	}
	return nil
}

// openDir opens a folder of the same mount to be emptied, also when its mode forbids that to its owner.
func openDir(parent int, name string) (int, error) {
	fd, err := openAny(parent, name)
	if err != nil {
		return fd, err
	}
	var folder unix.Stat_t
	if err = unix.Fstat(fd, &folder); err == nil && folder.Mode&0o300 != 0o300 {
		err = unix.Fchmod(fd, 0o700)
	}
	if err != nil {
		return -1, errors.Join(err, unix.Close(fd))
	}
	return fd, nil
}

func openAny(parent int, name string) (int, error) {
	how := unix.OpenHow{
		Flags:   unix.O_RDONLY | unix.O_DIRECTORY | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_NO_XDEV | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_BENEATH,
	}
	fd, err := unix.Openat2(parent, name, &how)
	if !errors.Is(err, unix.EACCES) {
		return fd, err
	}
	how.Flags = unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC
	handle, err := unix.Openat2(parent, name, &how)
	if err != nil {
		return -1, err
	}
	defer unix.Close(handle)
	if err := unix.Chmod(fmt.Sprintf("/proc/self/fd/%d", handle), 0o700); err != nil {
		return -1, err
	}
	how.Flags = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_CLOEXEC
	return unix.Openat2(parent, name, &how)
}
