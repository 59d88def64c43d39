package cgroup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/muster-agent/muster/shim/sandbox/proc"
)

// capable tells whether the process has a capability of the host, not of a user namespace.
func (h Host) capable(capability int) bool {
	users, err := h.text("/proc/self/uid_map")
	if err != nil || !slices.Equal(strings.Fields(users), []string{"0", "0", "4294967295"}) {
		return false
	}
	status, err := h.text("/proc/self/status")
	if err != nil {
		return false
	}
	_, after, _ := strings.Cut(status, "CapEff:")
	fields := strings.Fields(after)
	if len(fields) == 0 {
		return false
	}
	caps, err := strconv.ParseUint(fields[0], 16, 64)
	return err == nil && caps&(1<<capability) != 0
}

// delegated tells whether the folder is the top of a subtree that somebody gave us to arrange: systemd marks it, an
// ordinary user owns it but not what is above, or it is the root of our cgroup namespace (a container's).
func (h Host) delegated(dir, own string) bool {
	for _, mark := range []string{"trusted.delegate", "user.delegate"} {
		value := make([]byte, 8)
		if n, err := unix.Lgetxattr(h.path(dir), mark, value); err == nil && string(value[:n]) == "1" {
			return true
		}
	}
	if own == "/" {
		return true
	}
	var here, above unix.Stat_t
	if unix.Lstat(h.path(dir), &here) != nil || unix.Lstat(h.path(filepath.Dir(dir)), &above) != nil {
		return false
	}
	return handedOver(uint32(os.Geteuid()), here.Uid, above.Uid)
}

// handedOver is how Delegate= with User= looks: the user owns the cgroup and not the one above. Deeper ones that he
// owns are of his own service manager.
func handedOver(user, here, above uint32) bool { return user != 0 && here == user && above != user }

// foreignProcesses are the processes in the cgroup of dir itself that do not run this program.
func (h Host) foreignProcesses(dir string) ([]int, error) {
	text, err := h.text(filepath.Join(dir, "cgroup.procs"))
	if err != nil {
		return nil, err
	}
	pids, err := parsePids(text)
	return slices.DeleteFunc(pids, h.sameProgram), err
}

// sameProgram tells whether a process runs the very file that we run.
func (h Host) sameProgram(pid int) bool {
	ours, err := os.Stat(h.path("/proc/self/exe"))
	if err != nil {
		return false
	}
	theirs, err := os.Stat(h.path(filepath.Join("/proc", strconv.Itoa(pid), "exe")))
	return err == nil && os.SameFile(ours, theirs)
}

// leafPatience is how long other agents that start in the same cgroup may take to leave it.
const leafPatience = 5 * time.Second

// moveToLeaf moves the calling process, all its threads, into the leaf `<own cgroup>/muster-agent` and hands the
// controllers down, because a v2 cgroup holds either processes or controlled cgroups. Agents of one
// unit share the leaf. In a cgroup that is delegated to us all processes are moved, the unit's shell for one;
// else only those of this program, and a process of another program is an error. Nothing is done on v1, at the root of
// the host, and where it has been done.
func (t Tree) moveToLeaf(ctx context.Context) error {
	if t.Mode != V2 || t.Root {
		return nil
	}
	if err := t.enterLeaf(ctx); err != nil {
		return fmt.Errorf("move to leaf of %s: %w", t.Dir, err)
	}
	return nil
}

func (t Tree) enterLeaf(ctx context.Context) error {
	var usable []string
	for _, name := range v2Controllers {
		if t.Controllers[name].Why == "" {
			usable = append(usable, "+"+name)
		}
	}
	if usable == nil {
		return errors.New(t.why("memory"))
	}
	own, err := openFolder(t.Dir)
	if err != nil {
		return err
	}
	defer own.Close()
	ctx, cancel := context.WithTimeout(ctx, leafPatience)
	defer cancel()
	for pass := 0; ; pass++ {
		if err := t.empty(own); err != nil {
			return err
		}
		// A process may have been forked in the old cgroup meanwhile.
		err := own.write("cgroup.subtree_control", strings.Join(usable, " "))
		if !errors.Is(err, unix.EBUSY) || !proc.Pause(ctx, pass) {
			return err
		}
	}
}

// empty moves to the leaf who may be moved.
func (t Tree) empty(own folder) error {
	text, err := own.read("cgroup.procs")
	if err != nil || text == "" {
		return err
	}
	pids, err := parsePids(text)
	if err != nil {
		return err
	}
	if err := own.mkdir(leafName); err != nil {
		return err
	}
	leaf, err := own.open(leafName)
	if err != nil {
		return err
	}
	defer leaf.Close()
	for _, pid := range pids {
		if !t.Delegated && !t.host.sameProgram(pid) {
			continue
		}
		err := leaf.write("cgroup.procs", strconv.Itoa(pid))
		// EINVAL: it is being born; the next pass finds it.
		if err != nil && !errors.Is(err, unix.ESRCH) && !errors.Is(err, unix.EINVAL) {
			return err
		}
	}
	return nil
}
