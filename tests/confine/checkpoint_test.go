package confine_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/tests/need"
)

// A checkpoint folder that the process may not write to is refused before training starts, with whose it is and what
// would do; one that it may write to is used, wherever it lies and whoever owns it.
func TestCheckpointFolderThatTheProcessMayNotWrite(t *testing.T) {
	need.Root(t)
	const save = `touch "$MUSTER_CHECKPOINT_DIR/saved" || mkdir "$MUSTER_CHECKPOINT_DIR"`
	for name, tc := range map[string]struct {
		as    *syscall.Credential // who starts muster
		user  string              // muster.user
		uid   int                 // whose the folder is
		mode  os.FileMode
		lay   func(j *job, dir string)
		below string   // the checkpoint folder, in that one
		words []string // of the refusal; none: it is used
	}{
		"ids of its own": {mode: 0o755, words: []string{
			" on this host, may not write to DIR, which belongs to uid 0 and gid 0 with mode 0755: permission denied; ",
			" DIR; with another --app-id, or on another host, it has another uid), set muster.user", "leave muster.checkpoint.dir out",
		}},
		"ids of its own, to be made": {mode: 0o755, below: "new", words: []string{"may not make DIR/new in DIR, which belongs to uid 0"}},
		"ids of its own, open":       {mode: 0o777},
		"ids of its own, the instance's own folder": {mode: 0o755, lay: func(j *job, dir string) {
			j.must(os.Mkdir(filepath.Join(dir, "worker-0"), 0o755))
			j.must(os.Chmod(filepath.Join(dir, "worker-0"), 0o777)) //nolint:gosec // for the process
		}, below: "."},
		"muster.user":                 {user: "nobody", mode: 0o755, words: []string{"the process, uid 65534 on this host", "(chown 65534 DIR)"}},
		"muster.user, its own":        {user: "nobody", uid: nobody, mode: 0o755},
		"muster.user, the group's":    {user: "nobody", uid: 0, mode: 0o775, lay: func(j *job, dir string) { j.must(os.Chown(dir, 0, nobody)) }},
		"muster.user, its own shut":   {user: "nobody", uid: nobody, mode: 0o555, words: []string{"with mode 0555: permission denied"}},
		"a plain user":                {as: plainUser(), mode: 0o755, words: []string{"the process, uid 54321 on this host", "(chown 54321 DIR)"}},
		"a plain user, its own":       {as: plainUser(), uid: 54321, mode: 0o700},
		"a file system of only reads": {mode: 0o777, lay: readOnly, words: []string{"may not write to DIR", "read-only file system; name a folder that can be written"}},
	} {
		for _, engine := range engines() {
			if tc.as != nil && engine != "process" {
				continue // what else a user has is the host's to say
			}
			t.Run(engine+"/"+name, func(t *testing.T) {
				t.Parallel()
				j := blankJob(t, tc.as)
				dir := j.folderOf("saves", tc.uid, tc.mode)
				if tc.lay != nil {
					tc.lay(j, dir)
				}
				command := save
				if tc.below == "." {
					command = `touch "$MUSTER_CHECKPOINT_DIR/worker-0/saved"`
				}
				more := settings{"muster.checkpoint.dir": filepath.Join(dir, tc.below), "muster.checkpoint.pattern": "step-*"}
				if tc.user != "" {
					more["muster.user"] = tc.user
				}
				j.define(command, more)
				policy := object{"roots": []object{{"path": dir}}}
				if engine == "container" {
					policy = object{"mounts": []object{{"path": dir}}}
				}
				policy["users"] = object{"names": []string{"nobody"}}
				args := []string{"--engine", engine}
				if tc.as == nil {
					args = append(args, "--policy", j.policy(policy))
				}
				if tc.words == nil {
					j.succeeds(args...)
					return
				}
				words := []string{"muster.checkpoint.dir: the process, uid "}
				for _, word := range tc.words {
					words = append(words, strings.ReplaceAll(word, "DIR", dir))
				}
				j.run(args...).fails(t, registry.ClassNotPermitted, 77, words...)
				if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
					t.Errorf("%v is left there: %v", left, err)
				}
			})
		}
	}
}

// readOnly mounts a file system on a folder that nobody can write to.
func readOnly(j *job, dir string) {
	j.must(unix.Mount("tmpfs", dir, "tmpfs", unix.MS_RDONLY, "size=64k,mode=777"))
	j.t.Cleanup(func() { j.must(unix.Unmount(dir, unix.MNT_DETACH)) })
}

// A checkpoint folder that the operator's policy shows read-only is no missing mount. Of mounts in one another the last
// one shows it.
func TestCheckpointFolderInAReadOnlyMount(t *testing.T) {
	need.Root(t)
	t.Parallel()
	j := newJob(t, "true", nil)
	dir := j.folderOf("saves", 0, 0o777)
	j.define("true", settings{"muster.checkpoint.dir": dir})
	closed, open := object{"path": dir, "read_only": true}, object{"path": dir}
	around, closedAround := object{"path": filepath.Dir(dir)}, object{"path": filepath.Dir(dir), "read_only": true}
	for name, tc := range map[string]struct {
		mounts  []object
		refused string // by the place of a mount
	}{
		"it":                     {[]object{closed}, "mounts[0]"},
		"what is around it":      {[]object{closedAround, open}, ""},
		"in a writable one":      {[]object{around, closed}, "mounts[1]"},
		"below one that is over": {[]object{open, closedAround}, "mounts[1]"},
	} {
		policy := j.policy(object{"mounts": tc.mounts})
		e := j.run("--engine", "container", "--policy", policy)
		if tc.refused == "" && strings.Contains(e.Cause, "read_only") {
			t.Errorf("%s: a folder that is mounted writable is refused: %s", name, e.Cause)
		} else if tc.refused != "" {
			e.fails(t, registry.ClassNotPermitted, 77,
				"muster.checkpoint.dir: the process may not write to "+dir+": "+tc.refused+" of "+policy+" is read_only: ")
		}
		j.app += "x"
	}
}

// What a process has closed to itself (chmod a-w) does not keep the next start from replacing it.
func TestFolderThatAProcessHasClosed(t *testing.T) {
	need.Root(t)
	for _, engine := range engines() {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			j := newJob(t, "true", nil)
			out := j.folderOf("out", 0, 0o777)
			policy := j.policy(object{"roots": []object{{"path": out}}})
			for _, to := range []string{"first", "second"} {
				j.define("cd ${AGENT_WORK_ROOT} && mkdir -p model/part && touch model/part/file && chmod 555 model/part",
					settings{"muster.output.model": "file:" + filepath.Join(out, to)})
				j.succeeds("--engine", engine, "--policy", policy)
				j.app += "x"
			}
		})
	}
}
