package files

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/muster-agent/muster/shim/plan"
	"github.com/muster-agent/muster/shim/store"
)

// userStore is a store as the process's own user has it: an agent that is root reads and writes for a definition no
// more than the process could. What is opened stays open for the agent.
type userStore struct {
	store.Store
	user User
}

func (s userStore) List(ctx context.Context, path string) (all []store.Info, err error) {
	err = s.user.Do(func() (err error) { all, err = s.Store.List(ctx, path); return err })
	return all, err
}

func (s userStore) Stat(ctx context.Context, path string) (info store.Info, err error) {
	err = s.user.Do(func() (err error) { info, err = s.Store.Stat(ctx, path); return err })
	return info, err
}

func (s userStore) Open(ctx context.Context, path string, at store.Position) (c *store.Content, err error) {
	err = s.user.Do(func() (err error) { c, err = s.Store.Open(ctx, path, at); return err })
	return c, err
}

func (s userStore) Create(ctx context.Context, path string) (w io.WriteCloser, err error) {
	err = s.user.Do(func() (err error) { w, err = s.Store.Create(ctx, path); return err })
	return w, err
}

func (s userStore) Rename(ctx context.Context, from, to string) error {
	return s.user.Do(func() error { return s.Store.Rename(ctx, from, to) })
}

func (s userStore) Remove(ctx context.Context, path string) error {
	return s.user.Do(func() error { return s.Store.Remove(ctx, path) })
}

func (s userStore) MkdirAll(ctx context.Context, path string) error {
	return s.user.Do(func() error { return s.Store.MkdirAll(ctx, path) })
}

func (s userStore) Prune(ctx context.Context, path string) error {
	return s.user.Do(func() error { return s.Store.Prune(ctx, path) })
}

// Executable is the store's own word, where it has one.
func (s userStore) Executable(ctx context.Context, path string) bool {
	told, ok := s.Store.(interface {
		Executable(ctx context.Context, path string) bool
	})
	return ok && s.user.Do(func() error {
		if !told.Executable(ctx, path) {
			return fs.ErrInvalid
		}
		return nil
	}) == nil
}

// Do does something to files with the user's rights, where those differ from the agent's; a refusal says whose they
// were, for the process may know itself by another number. Goroutines that do starts
// have the agent's rights: what they do to files needs a Do of its own. The rights belong to a thread (setfsuid(2)),
// which ends with them: it is never unlocked.
func (u User) Do(do func() error) error {
	if !u.limited() {
		return do()
	}
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		if err := become(u.facts); err != nil {
			done <- err
			return
		}
		err := do()
		if errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM) {
			err = fmt.Errorf("as uid %d, which the process has on this host: %w", u.facts.UID, err)
		}
		done <- err
	}()
	return <-done
}

// limited tells whether the user has other rights to files than the agent.
func (u User) limited() bool { return u.another() && u.facts.UID != 0 }

// become gives this thread alone the user's rights to files. The calls of package syscall would give them to all
// threads.
func become(u *plan.UserFacts) error {
	groups := make([]uint32, len(u.Groups))
	for i, g := range u.Groups {
		groups[i] = uint32(g)
	}
	if _, _, errno := unix.RawSyscall(
		unix.SYS_SETGROUPS, uintptr(len(groups)), uintptr(unsafe.Pointer(unsafe.SliceData(groups))), 0,
	); errno != 0 {
		return fmt.Errorf("files as uid %d: %w", u.UID, errno)
	}
	for _, id := range []struct {
		call uintptr
		want int
	}{{unix.SYS_SETFSGID, u.GID}, {unix.SYS_SETFSUID, u.UID}} {
		const none = ^uintptr(0) // nobody's: it changes nothing, and the answer is who it is
		_, _, _ = unix.RawSyscall(id.call, uintptr(id.want), 0, 0)
		if now, _, _ := unix.RawSyscall(id.call, none, 0, 0); int(now) != id.want {
			return fmt.Errorf("files as uid %d: %w", u.UID, syscall.EPERM)
		}
	}
	if err := withoutCapabilities(); err != nil {
		return fmt.Errorf("files as uid %d: %w", u.UID, err)
	}
	return nil
}

// withoutCapabilities gives this thread's capabilities up. With a user's ids it has lost those for files
// (capabilities(7)), but others decide what /proc shows, and whether a quota holds.
func withoutCapabilities() error {
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var sets [2]unix.CapUserData
	if err := unix.Capget(&head, &sets[0]); err != nil {
		return err
	}
	for i := range sets {
		sets[i].Effective = 0
	}
	return unix.Capset(&head, &sets[0])
}

// store is a store with the user's rights, where those are others than the agent's.
func (u User) store(store store.Store) store.Store {
	if !u.limited() {
		return store
	}
	return userStore{store, u}
}
