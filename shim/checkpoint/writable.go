package checkpoint

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/muster-agent/muster/shim/fault"
	"github.com/muster-agent/muster/shim/files"
	"github.com/muster-agent/muster/shim/plan"
)

// refuseUnwritable refuses a checkpoint folder of this host that the process may not write to: training would fail at
// its first save, at each restart again. A file is made there with the process's rights and removed: the mode alone
// tells neither what a server grants nor what is mounted read-only.
func (m *Manager) refuseUnwritable(ctx context.Context) error {
	if m.plan.Checkpoint.Dir == "" || onStore(m.plan.Checkpoint.Dir) || m.isService() {
		return nil
	}
	l := m.locate(ctx)
	want, at := l.at("."), l.at(".")
	if m.plan.Root.Kind == plan.RootHost {
		if shut := files.As(m.cfg.Owner()).Shut(want); shut != "" {
			return m.unwritable(want, shut, syscall.EACCES)
		}
	}
	err := m.tryWrite(l)
	for errors.Is(err, fs.ErrNotExist) && at != "/" { // the process makes it at its first save
		at = filepath.Dir(at)
		err = m.tryWrite(location{dir: at, place: "."})
	}
	for _, refusal := range []syscall.Errno{syscall.EACCES, syscall.EPERM, syscall.EROFS} {
		if errors.Is(err, refusal) {
			return m.unwritable(want, at, refusal)
		}
	}
	return nil // what else fails there may pass, and a save tells
}

// tryWrite makes a file in a folder with the process's rights, and removes it.
func (m *Manager) tryWrite(l location) error {
	folder, err := m.open(l)
	if err != nil {
		return err
	}
	defer folder.Close()
	name := ownNames + "try-" + rand.Text()
	file, err := folder.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_ = errors.Join(file.Close(), folder.Remove(name)) // that it was made is the answer
	return nil
}

// unwritable says why the process cannot save in the folder want, by what it is refused in the folder at, and what
// would do. It is nil where the process may do more than the agent in its name.
func (m *Manager) unwritable(want, at string, refusal syscall.Errno) error {
	uid, whose := os.Geteuid(), ""
	if owner := m.cfg.Owner(); owner != nil {
		uid = owner.UID
	}
	if is, err := ownerOf(at); err == nil {
		if refusal == syscall.EACCES && m.cfg.Overrides(m.plan, int(is.Uid)) {
			return nil
		}
		whose = fmt.Sprintf(", which belongs to uid %d and gid %d with mode %04o", is.Uid, is.Gid, is.Mode&0o7777)
	}
	passing := "" // of a block of ids
	if os.Geteuid() == 0 && m.cfg.Overrides(m.plan, uid) {
		passing = "; with another --app-id, or on another host, it has another uid"
	}
	act := "write to " + at
	mend := fmt.Sprintf("let the operator give it to the process (chown %d %s%s)", uid, at, passing)
	switch {
	case at == want:
	case files.IsFolder(want):
		act, mend = "enter "+at+" on the way to "+want, fmt.Sprintf("let the operator open it (chmod o+x %s)", at)
	default:
		act = "make " + want + " in " + at
	}
	if os.Geteuid() == 0 {
		mend += ", set muster.user to a user who may"
	}
	if refusal == syscall.EROFS {
		mend = "name a folder that can be written"
	}
	if truth := files.Resolve(at); truth != at {
		act += " (" + truth + " on this host)"
	}
	return fault.NotPermitted(fmt.Errorf("muster.checkpoint.dir: the process, uid %d on this host, may not %s%s: %w; "+
		"%s, or leave muster.checkpoint.dir out to save in the work folder", uid, act, whose, refusal, mend))
}

// ownerOf looks at a folder that the operator's policy lets the definition name, with the agent's rights: the process
// itself may be refused even that.
func ownerOf(dir string) (*syscall.Stat_t, error) {
	above, err := files.HostFolder(filepath.Dir(dir))
	if err != nil {
		return nil, err
	}
	info, err := fs.Stat(above, filepath.Base(dir))
	if err != nil {
		return nil, err
	}
	is, _ := info.Sys().(*syscall.Stat_t) // as Linux has it
	return is, nil
}
