package binary

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// openedHome says to a test program that others may pass through the home folder.
const openedHome = "MUSTER_TESTS_HOME_OPEN"

// openHome lets the processes of a root agent, which are nobody on this host, pass through root's home folder to the
// programs that tests cache there. It changes nothing on the disk: this program is started once more, in a mount
// namespace where a folder with the same content lies over the home folder.
func openHome() error {
	home, err := os.UserHomeDir()
	if err != nil || os.Geteuid() != 0 || os.Getenv(openedHome) != "" {
		return nil
	}
	if info, err := os.Stat(home); err != nil || info.Mode()&0o001 != 0 {
		return nil
	}
	runtime.LockOSThread()
	if err := cover(home); err != nil {
		return fmt.Errorf("open %s to the processes of tests: %w", home, err)
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	return unix.Exec(self, os.Args, append(os.Environ(), openedHome+"=1"))
}

// openSelf lets such processes run this program itself: `go test` builds it in a folder that is closed to others.
func openSelf() error {
	if os.Geteuid() != 0 {
		return nil
	}
	self, err := os.Executable()
	for dir := filepath.Dir(self); err == nil && strings.HasPrefix(dir, filepath.Clean(os.TempDir())+"/"); dir = filepath.Dir(dir) {
		err = os.Chmod(dir, 0o755) //nolint:gosec // see above
	}
	return err
}

func cover(home string) error {
	if err := unix.Unshare(unix.CLONE_FS | unix.CLONE_NEWNS); err != nil {
		return err
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, ""); err != nil {
		return err
	}
	under, err := unix.Open(home, unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		return err
	}
	defer unix.Close(under)
	if err := unix.Mount("tmpfs", home, "tmpfs", 0, "mode=0755"); err != nil {
		return err
	}
	entries, err := os.ReadDir("/proc/self/fd/" + strconv.Itoa(under))
	if err != nil {
		return err
	}
	for _, e := range entries {
		from, to := filepath.Join("/proc/self/fd", strconv.Itoa(under), e.Name()), filepath.Join(home, e.Name())
		if e.Type()&os.ModeSymlink != 0 {
			target, err := os.Readlink(from)
			if err = errors.Join(err, os.Symlink(target, to)); err != nil {
				return err
			}
			continue
		}
		var err error
		if e.IsDir() {
			err = os.Mkdir(to, 0o755)
		} else {
			err = os.WriteFile(to, nil, 0o600)
		}
		if err = errors.Join(err, unix.Mount(from, to, "", unix.MS_BIND|unix.MS_REC, "")); err != nil {
			return err
		}
	}
	return nil
}
