package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/muster-agent/muster/shim/sandbox/container"
	"github.com/muster-agent/muster/shim/sandbox/guard"
	"github.com/muster-agent/muster/shim/sandbox/subids"
	"github.com/muster-agent/muster/tests/need"
)

const firstID = 0x7000_0000

// withIDs runs a test with each engine, whose guard is root in a user namespace. The user, if any, has its own id there.
// The work folder is the process's.
func withIDs(t *testing.T, user *guard.User, test func(t *testing.T, g *Guard, work string)) {
	t.Helper()
	need.Root(t)
	for _, e := range append(engines(t), Process{}) {
		t.Run(e.Name(), func(t *testing.T) {
			work := t.TempDir()
			reachable(t, work+"/")
			owner := guard.User{UID: firstID, GID: firstID}
			o := containerOptions(t, func(c *Confinement) {
				c.IDs = subids.New(subids.Block{UID: firstID, GID: firstID}, nil, nil)
				if c.User = user; user != nil {
					owner = *user
					groups := []int{int(user.GID)}
					for _, g := range user.Groups {
						groups = append(groups, int(g))
					}
					c.IDs = subids.New(subids.Block{UID: firstID, GID: firstID}, []int{int(user.UID)}, groups)
				}
				c.Mounts = append(c.Mounts, container.Mount{From: work, To: work})
			})
			if err := os.Chown(work, int(owner.UID), int(owner.GID)); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(work, 0o700); err != nil { //nolint:gosec // a folder
				t.Fatal(err)
			}
			g, err := e.StartGuard(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := g.Close(); err != nil {
					t.Error(err)
				}
			})
			test(t, g, work)
		})
	}
}

// raisedFiles is a hard limit of open files that only the agent may raise the guard's to; where this machine lets
// nobody raise one, the present one.
func raisedFiles(t *testing.T) uint64 {
	t.Helper()
	var now, agents unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &now); err != nil {
		t.Fatal(err)
	}
	agents = now
	agents.Max++
	if unix.Setrlimit(unix.RLIMIT_NOFILE, &agents) != nil {
		return now.Max
	}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &now); err != nil {
		t.Fatal(err)
	}
	return agents.Max
}

func TestRootInsideIsASubordinateIDOutside(t *testing.T) {
	hard := raisedFiles(t)
	withIDs(t, nil, func(t *testing.T, g *Guard, work string) {
		got := inside(t, g, `id -u; id -g; cat /proc/self/uid_map; ulimit -Hn; touch `+work+`/made && chmod 4755 `+work+`/made
			cat /etc/shadow >/dev/null 2>&1 && echo shadow is read
			kill -0 `+fmt.Sprint(os.Getpid())+` 2>/dev/null && echo the agent can be killed
			true`, func(s *Spec) {
			s.Rlimits = map[string]Rlimit{"nofile": {hard, hard}}
		})
		if got, want := strings.Join(strings.Fields(got), " "), fmt.Sprintf("0 0 0 %d 65536 %d", firstID, hard); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		info, err := os.Stat(filepath.Join(work, "made"))
		if err != nil {
			t.Fatal(err)
		}
		if is := info.Sys().(*syscall.Stat_t); is.Uid != firstID || is.Gid != firstID {
			t.Errorf("the file with a set-user-id bit belongs to %d:%d", is.Uid, is.Gid)
		}
	})
}

// A program that the host's root alone has is closed to a root that is not the host's, and the refusal says so.
func TestProgramsThatAreRootsAlone(t *testing.T) {
	withIDs(t, nil, func(t *testing.T, g *Guard, work string) {
		tool := filepath.Join(work, "closed", "tool")
		unfit := filepath.Join(work, "unfit")
		err := os.Mkdir(filepath.Dir(tool), 0o700)
		err = errors.Join(err, os.WriteFile(tool, nil, 0o755), os.WriteFile(unfit, nil, 0o644)) //nolint:gosec // programs
		if err != nil {
			t.Fatal(err)
		}
		hidden, toHidden, toNothing := filepath.Join(filepath.Dir(tool), "hidden"), filepath.Join(work, "a"), filepath.Join(work, "b")
		err = errors.Join(os.Mkdir(hidden, 0o700), os.Symlink(hidden, toHidden), os.Symlink(hidden+"-not", toNothing))
		if err != nil {
			t.Fatal(err)
		}
		closed := fmt.Sprintf("%s is closed to the process, uid %d on this host", filepath.Dir(tool), firstID)
		path := "PATH=" + filepath.Dir(tool) + ":/usr/bin"
		for _, c := range []struct {
			argv0, env string
			is         error
			want       string
		}{
			{tool, path, fs.ErrPermission, "exec " + tool + ": permission denied (" + closed + ")"},
			{tool + "/../absent", path, fs.ErrPermission, " permission denied (" + closed + ")"},
			{"tool", path, fs.ErrNotExist, "exec tool: no such file or directory (looked for in PATH, of which " + closed + ": install it in another"},
			{"nowhere", path, fs.ErrNotExist, "exec nowhere: no such file or directory (looked for in PATH, of which " + closed},
			{"nowhere", "PATH=/usr/bin", fs.ErrNotExist, "exec nowhere: no such file or directory (looked for in PATH: install it on the host"},
			{"tool", "PATH=" + toHidden + ":/usr/bin", fs.ErrNotExist, "(looked for in PATH, of which " + closed},
			{"tool", "PATH=" + toNothing + ":/usr/bin", fs.ErrNotExist, "(looked for in PATH, of which " + closed},
			{"unfit", path + ":" + work, fs.ErrPermission, "exec unfit: permission denied (looked for in PATH: " + unfit + " has mode 0644, by which the process"},
		} {
			_, err := g.Start(Spec{Argv: []string{c.argv0}, Dir: work, Env: []string{c.env}})
			if !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: got %v, want %s", c.argv0, err, c.want)
			}
		}
	})
}

func TestUserOfTheHostIsItself(t *testing.T) {
	withIDs(t, &guard.User{UID: 4242, GID: 4243, Groups: []uint32{4244}}, func(t *testing.T, g *Guard, work string) {
		got := inside(t, g, `id -u; id -g; id -G; touch `+work+`/home; stat -c %u `+work+`/home; cat /etc/shadow >/dev/null 2>&1 || echo closed`)
		if got, want := strings.Join(strings.Fields(got), " "), "4242 4243 4243 4244 4242 closed"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		info, err := os.Stat(filepath.Join(work, "home"))
		if err != nil {
			t.Fatal(err)
		}
		if is := info.Sys().(*syscall.Stat_t); is.Uid != 4242 || is.Gid != 4243 {
			t.Errorf("its file belongs to %d:%d", is.Uid, is.Gid)
		}
	})
}
