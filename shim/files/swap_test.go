package files

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/muster-agent/muster/shim/plan"
	"github.com/muster-agent/muster/tests/need"
)

// A process that is alive (another instance's, or of an account of the host) swaps its own file for one of others while
// the agent, which is root, gives the folder's files to another user, or takes set-user-ID bits from them.
func TestAttackFileIsSwapped(t *testing.T) {
	need.Root(t)
	const attacker, victim = 4242, 4243
	for name, act := range map[string]func(*os.Root) error{
		"while it is given": func(dir *os.Root) error {
			return As(&plan.UserFacts{UID: 4244, GID: 4244}).OwnAll(dir)
		},
		"while it is disarmed": func(dir *os.Root) error { return Disarm(dir, nil) },
	} {
		t.Run(name, func(t *testing.T) {
			dir, other := t.TempDir(), filepath.Join(t.TempDir(), "other")
			own := filepath.Join(dir, "own")
			files := map[string]*os.File{}
			for _, path := range []string{own, other} {
				f, err := os.Create(path)
				if err != nil {
					t.Fatal(err)
				}
				defer f.Close()
				files[path] = f
			}
			if err := errors.Join(files[other].Chown(victim, victim), files[other].Chmod(0o600)); err != nil {
				t.Fatal(err)
			}
			root, err := os.OpenRoot(dir)
			if err != nil {
				t.Fatal(err)
			}
			defer root.Close()
			stop, stopped := make(chan struct{}), make(chan struct{})
			go func() {
				defer close(stopped)
				for {
					select {
					case <-stop:
						return
					default: // twice: each has its own place again
						_ = unix.Renameat2(unix.AT_FDCWD, own, unix.AT_FDCWD, other, unix.RENAME_EXCHANGE)
						_ = unix.Renameat2(unix.AT_FDCWD, own, unix.AT_FDCWD, other, unix.RENAME_EXCHANGE)
					}
				}
			}()
			var is unix.Stat_t
			for range 10_000 { // a hole is hit within a second
				if err := errors.Join(os.Lchown(dir, attacker, attacker), files[own].Chown(attacker, attacker),
					files[own].Chmod(0o777|os.ModeSetuid)); err != nil {
					t.Fatal(err)
				}
				err := errors.Join(act(root), unix.Fstat(int(files[other].Fd()), &is))
				if err != nil || is.Uid != victim || is.Mode&0o7777 != 0o600 {
					t.Errorf("another user's file belongs to %d, mode %04o, %v", is.Uid, is.Mode&0o7777, err)
					break
				}
			}
			close(stop)
			<-stopped
		})
	}
}
