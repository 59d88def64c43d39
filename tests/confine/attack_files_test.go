package confine_test

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
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
	for _, engine := range []string{"process", "cgroup"} {
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
					e.fails(t, registry.ClassNotPermitted, 77, "muster.checkpoint.dir: checkpoint folder "+etc, `"roots": [{"path": "`+etc+`"}]`)
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
	for user, refusal := range map[string]string{"": `"roots": [{"path": "/etc/shadow", "read_only": true}]`, "nobody": "permission denied"} {
		t.Run("as "+user, func(t *testing.T) {
			t.Parallel()
			j := newJob(t, "echo got $X", nil).anyUser()
			j.env = append(j.env, "VAULT_TOKEN=hunter2", "NOMAD_TOKEN=hunter2")
			for ref, words := range map[string][]string{
				"file:/etc/shadow": {"secret X", "/etc/shadow", refusal},
				"env:VAULT_TOKEN":  {"secret X: variable VAULT_TOKEN belongs to the agent", `"secret_env": ["VAULT_TOKEN"]`},
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
			j.run("--engine", engine).fails(t, registry.ClassNotPermitted, 77, "muster.user 1002:42: ", "uid 1002", `"users": {"names": ["1002"]}`)
			j.app += "x"
			policy := j.policy(object{"users": object{"names": []string{"1000-59999"}}})
			j.run("--engine", engine, "--policy", policy).fails(t, registry.ClassNotPermitted, 77, "group 42", `"users": {"groups": ["42"]}`)
			j.app += "x"
			j.define("id", settings{"muster.user": "nobody"})
			j.run("--engine", engine, "--policy", policy).fails(t, registry.ClassNotPermitted, 77, `"users": {"names": ["nobody"]}`)
		})
	}
}
