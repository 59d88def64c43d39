package confine_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/tests/need"
)

// whoami says whom the process runs as and where it may write, without anything that root alone can read.
const whoami = `echo ids $(id -u) $(id -g) $(id -G); echo home $HOME; echo user $USER
n=0; for d in . "$MUSTER_CHECKPOINT_DIR" "$MUSTER_LOG_DIR" app/tmp; do touch "$d/mine" && n=$((n+1)); done; echo written $n
touch /usr/mine 2>/dev/null && echo elsewhere written || echo elsewhere refused
echo to stderr >&2`

// A process that is not root: its ids, its groups, its home, and the folders that are made for it.
func TestUsers(t *testing.T) {
	need.Root(t)
	for _, engine := range engines() {
		for user, want := range map[string]map[string]string{
			"nobody":    {"ids": "65534 65534 65534", "home": "/nonexistent", "user": "nobody"},
			"4242:4343": {"ids": "4242 4343 4343", "home": "/"},
			"games":     {"ids": "5 60 60", "home": "/usr/games", "user": "games"},
			"games:0":   {"ids": "5 0 0"},
		} {
			t.Run(engine+"/"+user, func(t *testing.T) {
				t.Parallel()
				j := newJob(t, whoami, settings{"muster.user": user}).anyUser()
				has(t, j.succeeds("--engine", engine), want)
				has(t, j.log("stdout.log"), map[string]string{"written": "4", "elsewhere": "refused"})
				if said := j.log("stderr.log"); said != "to stderr\n" {
					t.Errorf("stderr %q, want what was written", said)
				}
				uid := strings.Fields(want["ids"])[0]
				for _, path := range []string{j.own("mine"), filepath.Join(j.work, "checkpoint", "mine")} {
					if got := owner(t, path); got != uid {
						t.Errorf("%s belongs to %s, want %s", path, got, uid)
					}
				}
			})
		}
	}
}

func owner(t *testing.T, path string) string {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Error(err)
		return ""
	}
	return fmt.Sprint(info.Sys().(*syscall.Stat_t).Uid)
}

func TestUnknownUser(t *testing.T) {
	need.Root(t)
	for user, word := range map[string]string{"nosuchuser": `user "nosuchuser"`, "4242": "want uid:gid"} {
		t.Run(user, func(t *testing.T) {
			t.Parallel()
			newJob(t, "true", settings{"muster.user": user}).run().fails(t, registry.ClassDefinition, 65, word)
		})
	}
}

// plainUser is nobody of this host's accounts, so what it may do it may as everybody.
func plainUser() *syscall.Credential {
	return &syscall.Credential{Uid: 54321, Gid: 54321, Groups: []uint32{}}
}

// The agent of a plain user cannot make a process somebody else's, and its own words suffice.
func TestPlainUserStaysWhoItIs(t *testing.T) {
	need.Root(t)
	t.Parallel()
	j := jobOf(t, plainUser(), "true", settings{"muster.user": "nobody"})
	j.run().fails(t, registry.ClassNotPermitted, 77, "muster.user nobody: only an agent that is root can run a process as another user")
	j = jobOf(t, plainUser(), whoami, settings{"muster.user": "54321:54321"})
	has(t, j.succeeds(), map[string]string{"ids": "54321 54321 54321", "written": "4"})
}

// A folder above the work folder that the process may not pass is named before anything else fails for it.
func TestClosedFolderAboveTheWorkFolder(t *testing.T) {
	need.Root(t)
	for _, engine := range engines() {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			j := newJob(t, "echo in >model/it", settings{"muster.output.model": "out"})
			closed := j.folderOf("closed", 0, 0o700)
			j.work = filepath.Join(closed, "w")
			j.run("--engine", engine).fails(t, registry.ClassNotPermitted, 77,
				"the process may not enter its folder "+j.own(""), closed+" is closed to uid ", "--work-dir", "chmod o+x")
			j.must(os.Chmod(closed, 0o711)) //nolint:gosec // what the refusal says
			j.app += "x"
			j.succeeds("--engine", engine)
		})
	}
}

// A work folder that an agent makes is its own: the process's user passes through it, and nobody else does.
func TestFoldersAreClosed(t *testing.T) {
	need.Root(t)
	for _, user := range []string{"", "nobody"} {
		for _, engine := range engines() {
			t.Run(engine+"/"+user, func(t *testing.T) {
				t.Parallel()
				j := newJob(t, whoami, settings{"muster.user": user}).anyUser()
				if user == "" {
					j.define(whoami, nil)
				}
				j.work = filepath.Join(filepath.Dir(j.work), "made")
				has(t, j.succeeds("--engine", engine), map[string]string{"written": "4"})
				made, err := os.Stat(j.own("mine"))
				j.must(err)
				want := made.Sys().(*syscall.Stat_t).Gid // the process's
				if named := user == "nobody"; named != (want == nobody) || want == 0 {
					t.Errorf("the process has the group %d", want)
				}
				for _, dir := range []string{j.work, filepath.Join(j.work, "log")} {
					info, err := os.Stat(dir)
					j.must(err)
					mode := os.FileMode(0o710)
					if user != "" && engine == "container" {
						mode = 0o711 // root inside, which makes the container, has another group
					}
					if gid := info.Sys().(*syscall.Stat_t).Gid; info.Mode().Perm() != mode || gid != want {
						t.Errorf("%s has mode %v and group %d, want %v and %d", dir, info.Mode().Perm(), gid, mode, want)
					}
				}
			})
		}
	}
}
