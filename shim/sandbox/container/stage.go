package container

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/muster-agent/muster/shim/sandbox/subids"
)

// In a container with ids of its own the files of an image must have owners among those ids, although the layers, which
// all containers of the host share, lie on the disk with the image's. So each layer is mounted once more with other
// owners (an idmapped mount, mount_setattr(2)), which only root of the host may do, and not inside. The overlays over
// them are mounted in a mount namespace of one thread, from which the container is entered; the host's has no part.
// Where the kernel or the layers' filesystem cannot do so, the caller has copied the layers with other owners
// (Root.Owned): then only the overlays are mounted here.

// stage is what is mounted before a container is entered.
type stage struct {
	root     string            // the skeleton, which the paths below are relative to
	layers   map[string]string // folder of a layer → where it is mounted with other owners; empty: it has them
	overlays []stagedOverlay
	sys      bool // a sysfs at sys
	ids      *subids.Map
}

// stagedOverlay is one overlay: where it is mounted, and its options.
type stagedOverlay struct{ at, data string }

// around calls enter, which starts a process, where the mounts of the stage are.
func (s *stage) around(enter func() error) error {
	if s == nil {
		return enter()
	}
	var owners *os.File
	if len(s.layers) > 0 {
		var err error
		if owners, err = userNamespace(s.ids); err != nil {
			return fmt.Errorf("make a user namespace with the container's ids: %w", err)
		}
		defer owners.Close()
	}
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with its mounts
		err := s.mount(owners)
		if err == nil {
			err = enter()
		}
		done <- err
	}()
	return <-done
}

// mount makes the mounts in a mount namespace of this thread.
func (s *stage) mount(owners *os.File) error {
	if err := unix.Unshare(unix.CLONE_FS | unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("make a mount namespace: %w", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_PRIVATE|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	if s.sys {
		at := filepath.Join(s.root, "sys")
		if err := unix.Mount("sysfs", at, "sysfs", inert|unix.MS_RDONLY, ""); err != nil {
			return fmt.Errorf("mount sysfs: %w", err)
		}
	}
	for layer, at := range s.layers {
		if err := mountWithIDs(layer, filepath.Join(s.root, at), owners); err != nil {
			return err
		}
	}
	if err := unix.Chdir(s.root); err != nil {
		return fmt.Errorf("enter %s: %w", s.root, err)
	}
	for _, o := range s.overlays {
		if err := unix.Mount("overlay", o.at, "overlay", unix.MS_NODEV, o.data); err != nil {
			return fmt.Errorf("mount overlay over layers with the container's ids: %w", err)
		}
	}
	return nil
}

// errNoIDs says that a filesystem cannot be mounted with other owners.
var errNoIDs = errors.New("its filesystem cannot show other owners (idmapped mounts)")

// mountWithIDs mounts a folder with the owners that a user namespace gives it.
func mountWithIDs(from, to string, owners *os.File) error {
	fail := func(err error) error { return fmt.Errorf("mount layer %s with the container's ids: %w", from, err) }
	tree, err := unix.OpenTree(unix.AT_FDCWD, from, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err != nil {
		return fail(err)
	}
	defer unix.Close(tree)
	err = unix.MountSetattr(tree, "", unix.AT_EMPTY_PATH, &unix.MountAttr{
		Attr_set:  unix.MOUNT_ATTR_IDMAP | unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NODEV,
		Userns_fd: uint64(owners.Fd()),
	})
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) {
		err = fmt.Errorf("%w: %w", errNoIDs, err)
	}
	if err != nil {
		return fail(err)
	}
	if err := unix.MoveMount(tree, "", unix.AT_FDCWD, to, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
		return fail(err)
	}
	return nil
}

// TryOwners tries whether this host shows the layers in a folder with other owners: an overlay of two folders that are
// mounted so. The mounts are gone when it returns.
func TryOwners(dir string, ids *subids.Map) (err error) {
	if !initialised {
		return errNoInit
	}
	at, err := os.MkdirTemp(dir, ".probe-")
	if err != nil {
		return fmt.Errorf("try to show other owners: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(at)) }()
	for _, name := range []string{"layer", "layer/a", "layer/b", "shown", "root"} {
		if err := os.Mkdir(filepath.Join(at, name), 0o700); err != nil {
			return fmt.Errorf("try to show other owners: %w", err)
		}
	}
	s := stage{
		root: at, layers: map[string]string{filepath.Join(at, "layer"): "shown"}, ids: ids,
		overlays: []stagedOverlay{{at: filepath.Join(at, "root"), data: "lowerdir=shown/a:shown/b"}},
	}
	return s.around(func() error {
		var top unix.Stat_t
		if err := unix.Stat(filepath.Join(at, "root"), &top); err != nil {
			return fmt.Errorf("look at the owner of a layer's folder: %w", err)
		}
		if want, _ := ids.UID(0); int(top.Uid) != want {
			return fmt.Errorf("%w: got uid %d, want %d", errNoIDs, top.Uid, want)
		}
		return nil
	})
}

// idsVariable says to Init that this process only has to be in a user namespace until its input ends.
const idsVariable = "_MUSTER_IDS"

// TryIDs tries whether this host makes a user namespace with the ids.
func TryIDs(ids *subids.Map) error {
	space, err := userNamespace(ids)
	if err != nil {
		return fmt.Errorf("make a user namespace with subordinate ids: %w", err)
	}
	return space.Close()
}

// userNamespace is a user namespace with the ids, which no process is in.
func userNamespace(ids *subids.Map) (*os.File, error) {
	cmd := exec.Command("/proc/self/exe", "init") //nolint:noctx // it ends when its input does
	cmd.Env = []string{idsVariable + "=1"}
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: unix.CLONE_NEWUSER, UidMappings: ids.ProcUIDs(), GidMappings: ids.ProcGIDs(),
		GidMappingsEnableSetgroups: true,
	}
	input, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	space, err := os.Open(fmt.Sprintf("/proc/%d/ns/user", cmd.Process.Pid))
	ended := errors.Join(input.Close(), cmd.Wait())
	if err == nil && ended != nil {
		err = errors.Join(ended, space.Close())
	}
	return space, err
}
