package cgroup

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// errNoCgroup says that a folder is not of a cgroup file system, whatever its name.
var errNoCgroup = errors.New("not on a cgroup file system")

// folder is an open folder that was proved to be of a cgroup file system. Nothing is written but through one:
// no symbolic link exists below it, and what a name above it means may change without harm. A path through
// /proc/self/fd serves libraries that want one.
type folder struct{ *os.File }

// openFolder opens an absolute path in which no part is a symbolic link.
func openFolder(path string) (folder, error) {
	return openAt(unix.AT_FDCWD, path, unix.RESOLVE_NO_SYMLINKS|unix.RESOLVE_NO_MAGICLINKS)
}

// open a folder below f; it cannot climb out, nor into another mount.
func (f folder) open(rel string) (folder, error) {
	return openAt(int(f.Fd()), rel,
		unix.RESOLVE_BENEATH|unix.RESOLVE_NO_SYMLINKS|unix.RESOLVE_NO_MAGICLINKS|unix.RESOLVE_NO_XDEV)
}

func openAt(at int, path string, resolve uint64) (folder, error) {
	const flags = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_CLOEXEC
	fd, err := unix.Openat2(at, path, &unix.OpenHow{Flags: flags, Resolve: resolve})
	for errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR) { // something was renamed meanwhile
		fd, err = unix.Openat2(at, path, &unix.OpenHow{Flags: flags, Resolve: resolve})
	}
	if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM) { // before Linux 5.6; a filter that does not know it
		fd, err = openStepwise(at, path, flags|unix.O_NOFOLLOW)
	}
	if err != nil {
		return folder{}, &os.PathError{Op: "open", Path: path, Err: err}
	}
	f := folder{os.NewFile(uintptr(fd), path)}
	if err := onCgroupfs(fd); err != nil {
		return folder{}, errors.Join(&os.PathError{Op: "open", Path: path, Err: err}, f.Close())
	}
	return f, nil
}

// openStepwise opens one part of the path after the other, so that none is a link.
func openStepwise(at int, path string, flags int) (int, error) {
	if slices.Contains(strings.Split(path, "/"), "..") {
		return -1, unix.EXDEV
	}
	start := "."
	if filepath.IsAbs(path) {
		start = "/"
	}
	fd, err := unix.Openat(at, start, flags, 0)
	for part := range strings.SplitSeq(filepath.Clean(path), "/") {
		if err != nil {
			return -1, err
		}
		if part == "" || part == "." {
			continue
		}
		next, stepErr := unix.Openat(fd, part, flags, 0)
		_ = unix.Close(fd) // nothing was written
		fd, err = next, stepErr
	}
	return fd, err
}

func onCgroupfs(fd int) error {
	var st unix.Statfs_t
	if err := unix.Fstatfs(fd, &st); err != nil {
		return err
	}
	if st.Type != unix.CGROUP_SUPER_MAGIC && st.Type != unix.CGROUP2_SUPER_MAGIC {
		return errNoCgroup
	}
	return nil
}

// path names the open folder for a library that takes only paths. It holds as long as f is open.
func (f folder) path() string { return "/proc/self/fd/" + strconv.Itoa(int(f.Fd())) }

// file opens a file of the kernel in the folder.
func (f folder) file(name string, flags int) (*os.File, error) {
	fd, err := unix.Openat(int(f.Fd()), name, flags|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: filepath.Join(f.Name(), name), Err: err}
	}
	file := os.NewFile(uintptr(fd), filepath.Join(f.Name(), name))
	if err := onCgroupfs(fd); err != nil { // something may be mounted on it
		return nil, errors.Join(&os.PathError{Op: "open", Path: file.Name(), Err: err}, file.Close())
	}
	return file, nil
}

func (f folder) read(name string) (string, error) {
	file, err := f.file(name, unix.O_RDONLY)
	if err != nil {
		return "", err
	}
	defer file.Close()
	b, err := io.ReadAll(file)
	return strings.TrimSpace(string(b)), err
}

func (f folder) write(name, value string) error {
	file, err := f.file(name, unix.O_WRONLY)
	if err != nil {
		return err
	}
	_, err = file.WriteString(value)
	return errors.Join(err, file.Close())
}

func (f folder) has(name string) bool {
	var st unix.Stat_t
	return unix.Fstatat(int(f.Fd()), name, &st, unix.AT_SYMLINK_NOFOLLOW) == nil
}

// mkdir makes a folder below; one that is there is no error.
func (f folder) mkdir(name string) error {
	err := unix.Mkdirat(int(f.Fd()), name, 0o755)
	if err != nil && !errors.Is(err, unix.EEXIST) {
		return &os.PathError{Op: "mkdir", Path: filepath.Join(f.Name(), name), Err: err}
	}
	return nil
}

// makeNew makes the folder rel, whose last part must be new, and those above it.
func (f folder) makeNew(rel string) error {
	above := ""
	for part := range strings.SplitSeq(filepath.Dir(rel), "/") {
		above = filepath.Join(above, part)
		if err := f.mkdir(above); err != nil {
			return err
		}
	}
	switch err := unix.Mkdirat(int(f.Fd()), rel, 0o755); {
	case errors.Is(err, unix.EEXIST):
		return fmt.Errorf("%s was made meanwhile: %w", filepath.Join(f.Name(), rel), errInUse)
	case err != nil:
		return &os.PathError{Op: "mkdir", Path: filepath.Join(f.Name(), rel), Err: err}
	}
	return nil
}

// lock locks the folder until it is closed, or its process ends; one that another process has locked is in use.
func (f folder) lock() error {
	err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return errInUse
	}
	return err
}

// shows is ENOENT where the name below f is not the folder dir any more.
func (f folder) shows(rel string, dir folder) error {
	var named, is unix.Stat_t
	if err := unix.Fstatat(int(f.Fd()), rel, &named, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return &os.PathError{Op: "stat", Path: filepath.Join(f.Name(), rel), Err: err}
	}
	if err := unix.Fstat(int(dir.Fd()), &is); err != nil {
		return &os.PathError{Op: "stat", Path: dir.Name(), Err: err}
	}
	if named.Ino != is.Ino {
		return &os.PathError{Op: "lock", Path: filepath.Join(f.Name(), rel), Err: unix.ENOENT}
	}
	return nil
}

// rmdir removes one folder below; one that is gone is no error.
func (f folder) rmdir(name string) error {
	err := unix.Unlinkat(int(f.Fd()), name, unix.AT_REMOVEDIR)
	if err != nil && !isGone(err) {
		return &os.PathError{Op: "rmdir", Path: filepath.Join(f.Name(), name), Err: err}
	}
	return nil
}

// isGone tells of a cgroup that was removed: its open files answer ENODEV.
func isGone(err error) bool { return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENODEV) }

// children are the names of the cgroups right below.
func (f folder) children() ([]string, error) {
	again, err := f.open(".") // with an offset of its own
	if err != nil {
		return nil, err
	}
	defer again.Close()
	entries, err := again.ReadDir(-1)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if e.IsDir() {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

// walk calls visit for f and all cgroups below it, children first. What goes meanwhile is left out.
func (f folder) walk(visit func(folder) error) error {
	names, err := f.children()
	if err != nil && !isGone(err) {
		return err
	}
	for _, name := range names {
		child, err := f.open(name)
		if isGone(err) {
			continue
		}
		if err != nil {
			return err
		}
		err = child.walk(visit)
		if err := errors.Join(err, child.Close()); err != nil {
			return err
		}
	}
	if err := visit(f); err != nil && !isGone(err) {
		return err
	}
	return nil
}

// pids are the processes of f and of all cgroups below it, without duplicates. 0 stands for one that this pid
// namespace cannot name.
func (f folder) pids() ([]int, error) {
	var pids []int
	err := f.walk(func(g folder) error {
		text, err := g.read("cgroup.procs")
		if err != nil {
			// A threaded cgroup has no list of processes; that above it has.
			if errors.Is(err, unix.EOPNOTSUPP) {
				return nil
			}
			return err
		}
		more, err := parsePids(text)
		pids = append(pids, more...)
		return err
	})
	slices.Sort(pids)
	return slices.Compact(pids), err
}

func parsePids(text string) ([]int, error) {
	var pids []int
	for field := range strings.FieldsSeq(text) {
		pid, err := strconv.Atoi(field)
		if err != nil {
			return nil, fmt.Errorf("cgroup.procs %q: %w", field, errFormat)
		}
		pids = append(pids, pid)
	}
	return pids, nil
}
