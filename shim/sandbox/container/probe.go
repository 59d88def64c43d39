package container

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// probeVariable holds the folder that a probing process may use.
const probeVariable = "_MUSTER_PROBE"

// Probe tries whether a container can be made here: this program is run once more in new namespaces and makes the
// mounts of a container in a filesystem of its own. why says what failed.
func Probe(ctx context.Context) (ok bool, why string) {
	dir, err := os.MkdirTemp("", "muster-probe-")
	if err != nil {
		return false, err.Error()
	}
	defer os.RemoveAll(dir)
	if err := probe(ctx, dir); err != nil {
		return false, err.Error()
	}
	return true, ""
}

func probe(ctx context.Context, dir string) error {
	if !initialised {
		return errNoInit
	}
	who, err := currentIdentity(nil)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "/proc/self/exe", "init")
	cmd.Env = []string{probeVariable + "=" + dir}
	var said bytes.Buffer
	cmd.Stdout = &said
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS,
		Pdeathsig:  syscall.SIGKILL,
	}
	if who.rootless {
		cmd.SysProcAttr.Cloneflags |= unix.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: who.uid, Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{HostID: who.gid, Size: 1}}
	}
	err = cmd.Run()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &exit) && said.Len() > 0:
		return errors.New(strings.TrimSpace(said.String()))
	default:
		text := err.Error()
		if h := hint("enter the namespaces", text); h != "" {
			text += " (" + h + ")"
		}
		return errors.New("enter the namespaces: " + text)
	}
}

// probeMounts makes a container's mounts, in namespaces that end with this process, and says what failed.
func probeMounts(say io.Writer) int {
	dir := os.Getenv(probeVariable)
	for _, try := range []struct {
		what string
		do   func() error
	}{
		{"make mounts private", func() error { return unix.Mount("", "/", "", unix.MS_PRIVATE|unix.MS_REC, "") }},
		{"mount tmpfs", func() error { return mountAt(dir, "tmpfs", "t", 0, "") }},
		{"mount proc", func() error { return mountAt(filepath.Join(dir, "proc"), "proc", "proc", inert, "") }},
		{"mount devpts", func() error {
			return mountAt(filepath.Join(dir, "pts"), "devpts", "devpts", unix.MS_NOSUID|unix.MS_NOEXEC, "newinstance")
		}},
		{"mount mqueue", func() error { return mountAt(filepath.Join(dir, "mqueue"), "mqueue", "mqueue", inert, "") }},
		{"bind /usr", func() error { return mountAt(filepath.Join(dir, "usr"), "", "/usr", binds, "") }},
		{"make /usr read-only with what is mounted below it (Linux 5.12)", func() error {
			return unix.MountSetattr(-1, filepath.Join(dir, "usr"), unix.AT_RECURSIVE,
				&unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY})
		}},
	} {
		if err := try.do(); err != nil {
			fmt.Fprintf(say, "%s: %v\n", try.what, err)
			return 1
		}
	}
	return 0
}

func mountAt(at, kind, from string, flags uintptr, data string) error {
	if err := os.MkdirAll(at, 0o755); err != nil {
		return err
	}
	return unix.Mount(from, at, kind, flags, data)
}
