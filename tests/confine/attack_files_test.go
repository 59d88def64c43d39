package confine_test

import (
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/tests/folder"
	"github.com/muster-agent/muster/tests/need"
)

// nobody is the uid and gid of the user that the attacker's definitions run as.
const nobody = 65534

// folderOf makes a folder beside the job's own that belongs to a user.
func (j *job) folderOf(name string, uid int, mode os.FileMode) string {
	j.t.Helper()
	dir := filepath.Join(filepath.Dir(j.work), name)
	j.must(os.MkdirAll(dir, mode))
	j.must(os.Chmod(dir, mode))
	j.must(os.Chown(dir, uid, uid))
	return dir
}

// again is another run of the app, in a new work folder and with another definition.
func (j *job) again(command string, more settings) {
	j.t.Helper()
	j.work += "x"
	j.must(os.Mkdir(j.work, 0o755))
	j.define(command, more)
}

// A user's checkpoint is brought back by an agent that is root, into a folder that the user may not write to; and
// another user's model is taken for a checkpoint, and copied into the attacker's store.
func TestAttackCheckpointsOfOthers(t *testing.T) {
	need.Root(t)
	for _, engine := range engines() {
		for _, admitted := range []bool{false, true} {
			name := engine + "/refused by the policy"
			if admitted {
				name = engine + "/refused by the user's rights"
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				j := newJob(t, "true", nil)
				store, etc, model := j.folderOf("store", nobody, 0o755), j.folderOf("etc", 0, 0o755), j.folderOf("model", 4242, 0o700)
				j.must(os.WriteFile(filepath.Join(model, "step-9"), []byte("theirs"), 0o600))
				j.must(os.Chown(filepath.Join(model, "step-9"), 4242, 4242))
				given := settings{"muster.user": "nobody", "muster.checkpoint.pattern": "step-*", "muster.checkpoint.sync": "file:" + store}
				with := func(dir string) settings {
					all := maps.Clone(given)
					all["muster.checkpoint.dir"] = dir
					return all
				}
				users := object{"names": []string{"nobody"}, "groups": []string{"nogroup"}}
				root := filepath.Dir(j.work)
				open := j.policy(object{"users": users, "roots": []object{{"path": root}}})
				remedy := `[{"path": "` + etc + `"}]`
				if engine == "container" { // the process sees the folders, and the agent may use them, by the policy's mounts
					open = j.policy(object{"users": users, "mounts": []object{{"path": store}, {"path": etc}, {"path": model}}})
					remedy = `"mounts": [{"path": `
				}
				// The attacker's file comes into the store.
				j.define("echo '* * * * * root id' > $MUSTER_CHECKPOINT_DIR/step-5", given)
				j.succeeds("--engine", engine, "--policy", open)
				policy := open
				if !admitted {
					policy = j.policy(object{"users": users, "roots": []object{{"path": store}}})
				}
				j.again("true", with(etc))
				e := j.run("--engine", engine, "--policy", policy)
				if got := folder.Content(t, etc); got != "" {
					t.Errorf("a user's file came into a folder of root: %s", got)
				}
				if !admitted {
					e.fails(t, registry.ClassNotPermitted, 77, "muster.checkpoint.dir: checkpoint folder "+etc, remedy)
				} else if e.code == 0 || !strings.Contains(e.Cause, "permission denied") {
					t.Errorf("ended with %d: %s; want a refusal for want of a right", e.code, e.Cause)
				}
				j.again("true", with(model))
				j.app += "x"
				e = j.run("--engine", engine, "--policy", policy)
				if got := folder.Content(t, store); strings.Contains(got, "theirs") {
					t.Errorf("another user's model came into the attacker's store")
				}
				if !admitted {
					e.fails(t, registry.ClassNotPermitted, 77, "muster.checkpoint.dir: checkpoint folder "+model)
				}
			})
		}
	}
}

// A definition names files, variables and keys that are root's as secrets of its process.
func TestAttackSecretsOfRoot(t *testing.T) {
	need.Root(t)
	for _, user := range []string{"", "nobody"} {
		t.Run("as "+user, func(t *testing.T) {
			t.Parallel()
			j := newJob(t, "echo got $X", nil).anyUser()
			j.env = append(j.env, "VAULT_TOKEN=hunter2", "NOMAD_TOKEN=hunter2")
			for ref, words := range map[string][]string{
				"file:/etc/shadow": {"secret X", "/etc/shadow", "permission denied"},
				"env:VAULT_TOKEN":  {"secret X: variable VAULT_TOKEN belongs to the agent: give it MUSTER_SECRET_VAULT_TOKEN"},
				"env:NOMAD_TOKEN":  {"secret X: variable NOMAD_TOKEN belongs to the agent"},
				"keyring:x":        {"secret X: key x is root's", `"secret_keyring": ["x"]`},
			} {
				set := settings{"muster.secret.X": ref}
				if user != "" {
					set["muster.user"] = user
				}
				j.again("echo got $X", set)
				j.app += "x"
				e := j.run("--engine", "process")
				if e.code == 0 || !absent(filepath.Join(j.work, "log", "worker-0", "stdout.log")) && strings.Contains(j.log("stdout.log"), "got ") {
					t.Errorf("%s: ended with %d, want it refused before the start", ref, e.code)
				}
				for _, word := range words {
					if !strings.Contains(e.Cause, word) {
						t.Errorf("%s: cause %q, want %q in it", ref, e.Cause, word)
					}
				}
			}
		})
	}
}

// A definition has its process run as users and with groups whose files it wants.
func TestAttackUsersAndGroups(t *testing.T) {
	need.Root(t)
	for _, engine := range engines() {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			j := newJob(t, "head -1 /etc/shadow", settings{"muster.user": "1002:42"})
			j.run("--engine", engine).fails(t, registry.ClassNotPermitted, 77, "muster.user 1002:42: ", "uid 1002", "group 42", `"users": {"names": ["1002"], "groups": ["42"]}`)
			j.app += "x"
			policy := j.policy(object{"users": object{"names": []string{"1000-59999"}}})
			j.run("--engine", engine, "--policy", policy).fails(t, registry.ClassNotPermitted, 77, "group 42", `add {"groups": ["42"]} to what "users" has in `)
			j.app += "x"
			j.define("id", settings{"muster.user": "nobody"})
			j.run("--engine", engine, "--policy", policy).fails(t, registry.ClassNotPermitted, 77, `{"names": ["nobody"]`)
		})
	}
}

// Somebody lays out a work folder, with links where an agent that is root will write, and has root use it.
func TestAttackFoldersOfOthers(t *testing.T) {
	need.Root(t)
	for name, tt := range map[string]struct {
		lay   func(j *job) // the work folder and what is above it
		words []string
	}{
		"another user's": {func(j *job) { j.must(os.Chown(j.work, 4242, 4242)) }, []string{"belongs to uid 4242 (mode 0700), want uid 0", "chown"}},
		"open to all":    {func(j *job) { j.must(os.Chmod(j.work, 0o777)) }, []string{"may be written by others (uid 0, mode 0777)", "chmod go-w"}},
		"below another user's": {func(j *job) {
			above := j.folderOf("theirs", 4242, 0o755)
			j.must(os.Rename(j.work, filepath.Join(above, "w")))
			j.work = filepath.Join(above, "w")
		}, []string{"theirs, which belongs to uid 4242 (mode 0755)"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := newJob(t, "true", nil)
			victim := j.folderOf("victim", 0, 0o755)
			j.must(os.Mkdir(filepath.Join(j.work, "log"), 0o755))
			j.must(os.Symlink(victim, filepath.Join(j.work, "log", "worker-0")))
			tt.lay(j)
			_, said, code := j.verb("run", j.dir, "--app-id", j.app, "--work-dir", j.work)
			if code != 77 {
				t.Errorf("ended with %d, want 77", code)
			}
			for _, word := range append(tt.words, "folder "+j.work) {
				if !strings.Contains(said, word) {
					t.Errorf("said %q, want %q in it", said, word)
				}
			}
			if got := folder.Content(t, victim); got != "" {
				t.Errorf("root wrote through the attacker's link: %s", got)
			}
		})
	}
}

// A process that is root leaves programs and devices that give root's rights to whoever finds them.
func TestAttackSetUserIDFiles(t *testing.T) {
	need.Root(t)
	for _, engine := range engines() {
		for _, user := range []string{"", "nobody"} {
			t.Run(engine+" as "+user, func(t *testing.T) {
				t.Parallel()
				setUserIDFiles(t, engine, user)
			})
		}
	}
}

func setUserIDFiles(t *testing.T, engine, user string) {
	t.Helper()
	const arm = `for d in . "$MUSTER_LOG_DIR" "$MUSTER_CHECKPOINT_DIR"; do
	cp /usr/bin/id $d/armed && chmod 6755 $d/armed && ln $d/armed $d/twice && cp /usr/bin/id $d/group && chmod 2755 $d/group
	mknod $d/disk b 7 0; ln -s /usr/bin/su $d/link; done; echo armed`
	j := newJob(t, arm, nil).anyUser()
	if user != "" {
		j.define(arm, settings{"muster.user": user})
	}
	su, err := os.Stat("/usr/bin/su")
	j.must(err)
	if out := j.succeeds("--engine", engine); out != "armed\n" {
		t.Fatalf("the process said %q", out)
	}
	for _, dir := range []string{j.own("."), filepath.Join(j.work, "log", "worker-0"), filepath.Join(j.work, "checkpoint")} {
		entries, err := os.ReadDir(dir)
		j.must(err)
		if len(entries) == 0 {
			t.Errorf("%s is empty: nothing was tried", dir)
		}
		for _, e := range entries {
			info, err := e.Info()
			j.must(err)
			if info.Mode()&(os.ModeSetuid|os.ModeSetgid|os.ModeDevice) != 0 {
				t.Errorf("%s is left with mode %v", filepath.Join(dir, e.Name()), info.Mode())
			}
		}
	}
	if after, err := os.Stat("/usr/bin/su"); err != nil || after.Mode() != su.Mode() {
		t.Errorf("the link was followed: /usr/bin/su has mode %v, had %v (%v)", after.Mode(), su.Mode(), err)
	}
	if info, err := os.Stat(j.own(".")); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the instance's folder has mode %v, want 0700 (%v)", info.Mode(), err)
	}
}

// A stranger makes the usual state folder of a user who has none yet, and names a registry and a socket in it.
func TestAttackStateFolderOfAnother(t *testing.T) {
	need.Root(t)
	var asked atomic.Int32
	registry := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	defer registry.Close()
	j := jobOf(t, plainUser(), "true", nil)
	lay := filepath.Join(j.state, "apps", j.app)
	at := strings.TrimPrefix(registry.URL, "http://")
	text := `{"version": 1, "app": "` + j.app + `", "run": "1-a", "registry": "consul://` + at + `", "pid": 1}`
	j.must(os.MkdirAll(lay, 0o755))
	j.must(os.WriteFile(filepath.Join(lay, "app.json"), []byte(text), 0o644))
	j.must(os.WriteFile(filepath.Join(lay, "worker-0.json"), []byte("{}"), 0o644))
	socket, err := net.Listen("unix", filepath.Join(lay, "worker-0.sock"))
	j.must(err)
	defer socket.Close()
	go func() {
		for {
			c, err := socket.Accept()
			if err != nil {
				return
			}
			asked.Add(1)
			_ = c.Close()
		}
	}()
	j.must(os.Chmod(socket.Addr().String(), 0o777))
	j.must(os.Chown(j.state, 4242, 4242))
	j.must(os.Chmod(j.state, 0o755))
	j.env = append(j.env, "CONSUL_HTTP_TOKEN=secret")
	instance := j.app + "/worker-0"
	for _, args := range [][]string{
		{"status", j.app},
		{"stop", j.app},
		{"ps"},
		{"logs", instance},
		{"signal", instance, "TERM"},
		{"exec", instance, "--", "true"},
		{"forget", j.app},
	} {
		_, said, code := j.verb(args...)
		if code != 77 || !strings.Contains(said, "belongs to uid 4242") {
			t.Errorf("muster %s ended with %d and said %q, want 77", args[0], code, said)
		}
	}
	if n := asked.Load(); n != 0 {
		t.Errorf("the stranger's registry and socket were asked %d times", n)
	}
}

// A folder of root's that a process has moved into its own, where its checkpoints are to be, is not given to it at the
// next start. It may move it: others may write to it, and to the folder that it was in.
func TestMovedFolderIsNoCheckpointFolder(t *testing.T) {
	need.Root(t)
	for _, engine := range []string{"cgroup", "process"} { // a container does not have that folder
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			more := settings{"muster.user": "nobody", "muster.checkpoint.dir": "${AGENT_WORK_ROOT}/saves"}
			j := newJob(t, "true", more)
			shared, saves := j.folderOf("shared", 0, 0o777), j.own("saves")
			theirs := filepath.Join(shared, "theirs")
			j.must(os.Mkdir(theirs, 0o755))
			j.must(os.Chmod(theirs, 0o777)) //nolint:gosec // so that it can be moved
			j.must(os.WriteFile(filepath.Join(theirs, "file"), nil, 0o600))
			policy := j.policy(object{"users": object{"names": []string{"nobody"}}})
			j.define("rm -r "+saves+" && mv "+theirs+" "+saves, more)
			j.succeeds("--engine", engine, "--policy", policy)
			j.app += "x"
			j.define("true", more)
			j.succeeds("--engine", engine, "--policy", policy)
			for _, path := range []string{saves, filepath.Join(saves, "file")} {
				if info, err := os.Stat(path); err != nil || info.Sys().(*syscall.Stat_t).Uid != 0 {
					t.Errorf("%s: got %+v, %v, want that it is root's", path, info, err)
				}
			}
		})
	}
}
