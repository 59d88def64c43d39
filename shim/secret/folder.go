package secret

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/muster-agent/muster/shim/hostlock"
	"github.com/muster-agent/muster/shim/ownfolder"
)

// folderName is the folder of all agents of a user, in a folder of that user's.
const folderName = "secrets"

// ErrNoMemory says that the host has no filesystem in memory for this user.
var ErrNoMemory = errors.New("no tmpfs that this agent may write to")

// Folder has the secrets of one instance as files, in memory. Its files are the process's to read, and end with it; the
// folder is another user's process's to look into, not to write to.
type Folder struct {
	Path string
	uid  int
	gid  int
	lock *hostlock.Lock
	root *os.Root
}

// Owner is whom the files belong to, as the host's kernel knows the process; nil: this agent's own user.
type Owner struct{ UID, GID int }

// MakeFolder makes the folder of an instance. Remove it at the instance's end; that of a killed agent Sweep removes.
func MakeFolder(instance string, owner *Owner) (f *Folder, err error) {
	if owner == nil {
		owner = &Owner{os.Geteuid(), os.Getegid()}
	}
	base, err := inMemory()
	if err != nil {
		return nil, err
	}
	f = &Folder{uid: owner.UID, gid: owner.GID}
	f.lock, err = hostlock.Take(lockOf(base, instance))
	if errors.Is(err, hostlock.ErrHeld) { // an instance of that name in another registry, or one that this supersedes
		instance += "." + strconv.Itoa(os.Getpid())
		f.lock, err = hostlock.Take(lockOf(base, instance))
	}
	if err != nil {
		return nil, fmt.Errorf("folder of secrets: %w", err)
	}
	f.Path = filepath.Join(base, instance)
	defer func() {
		if err != nil {
			err = fmt.Errorf("folder of secrets: %w", errors.Join(err, f.Remove()))
		}
	}()
	// The folder above is this agent's alone: what has this name is of a killed agent.
	if err := errors.Join(os.RemoveAll(f.Path), os.Mkdir(f.Path, 0o700)); err != nil {
		return f, err
	}
	if f.root, err = os.OpenRoot(f.Path); err != nil {
		return f, err
	}
	if f.uid == os.Geteuid() {
		return f, nil
	}
	const look = 0o750 // the process may not fill the host's memory here
	return f, errors.Join(f.root.Lchown(".", -1, f.gid), f.root.Chmod(".", look))
}

// Write replaces the files by one for each value, which its owner alone may read.
func (f *Folder) Write(values map[string]string) error {
	for name, value := range values {
		if err := f.write(name, value); err != nil {
			return fmt.Errorf("secret %s as a file: %w", name, err)
		}
	}
	return nil
}

// write makes each file anew: the process may own the folder, and what stands there may lead elsewhere.
func (f *Folder) write(name, value string) (err error) {
	half := "." + name
	if err := f.root.Remove(half); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	file, err := f.root.OpenFile(half, os.O_CREATE|os.O_EXCL|os.O_WRONLY|unix.O_NOFOLLOW, 0o400)
	if err != nil {
		return err
	}
	_, err = file.WriteString(value)
	if err = errors.Join(err, file.Chown(f.uid, f.gid), file.Close()); err != nil {
		return errors.Join(err, f.root.Remove(half))
	}
	return f.root.Rename(half, name)
}

// Remove removes the folder. It may be called again.
func (f *Folder) Remove() error {
	if f == nil || f.lock == nil {
		return nil
	}
	var err error
	if f.root != nil {
		err = f.root.Close()
	}
	err = errors.Join(err, os.RemoveAll(f.Path), f.lock.Release())
	f.lock, f.root = nil, nil
	return err
}

// Sweep removes the folders of this user's agents that were killed, and returns their paths.
func Sweep() (swept []string, err error) {
	base, err := inMemory()
	if err != nil {
		return nil, nil //nolint:nilerr // without a place for them there are none
	}
	entries, err := os.ReadDir(base)
	for _, e := range entries {
		lock, lockErr := hostlock.Take(lockOf(base, e.Name()))
		if lockErr != nil { // its agent lives
			continue
		}
		path := filepath.Join(base, e.Name())
		err = errors.Join(err, os.RemoveAll(path), lock.Release())
		swept = append(swept, path)
	}
	return swept, err
}

// lockOf is the name of the lock of a folder's agent.
func lockOf(base, name string) string { return "secrets" + filepath.Join(base, name) }

// inMemory makes the folder of this user's secrets in the first place that is in memory and can be this user's alone.
func inMemory() (string, error) {
	var refused error
	for _, dir := range candidates(os.Geteuid(), os.Getenv("XDG_RUNTIME_DIR")) {
		above := filepath.Dir(dir)
		var in unix.Statfs_t
		if err := unix.Statfs(above, &in); err != nil || in.Type != unix.TMPFS_MAGIC && in.Type != unix.RAMFS_MAGIC {
			continue
		}
		err := ownfolder.Make(above, filepath.Base(dir), folderName)
		if err == nil {
			return filepath.Join(dir, folderName), nil
		}
		refused = errors.Join(refused, err)
	}
	return "", errors.Join(ErrNoMemory, refused)
}

func candidates(uid int, runtimeDir string) []string {
	dirs := []string{fmt.Sprintf("/run/user/%d/muster", uid)}
	if uid == 0 {
		dirs = []string{"/run/muster"}
	}
	if runtimeDir != "" {
		dirs = append(dirs, filepath.Join(runtimeDir, "muster"))
	}
	return append(dirs, fmt.Sprintf("/dev/shm/muster-%d", uid))
}
