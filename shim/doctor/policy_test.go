package doctor

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/muster-agent/muster/shim/launcher"
	"github.com/muster-agent/muster/shim/policy"
	"github.com/muster-agent/muster/tests/need"
)

// The row says all that the policy changes.
func TestPolicyRow(t *testing.T) {
	const defaults = "userns private; refuse_root true"
	for fields, want := range map[string]string{
		``:                       defaults + "; seccomp default",
		`, "userns": "host"`:     "userns host; refuse_root true; seccomp default",
		`, "refuse_root": false`: "userns private; refuse_root false; seccomp default",
		`, "mounts": [{"path": "/tmp"}, {"path": "/usr", "to": "/mnt", "read_only": true}]`:   defaults + "; mounts /tmp, /usr at /mnt (read-only); seccomp default",
		`, "roots": [{"path": "/tmp"}, {"path": "/usr", "read_only": true}]`:                  defaults + "; roots /tmp, /usr (read-only); seccomp default",
		`, "users": {"names": ["root", "1000-2000"], "groups": ["44"]}`:                       defaults + "; users root, 1000-2000; groups 44; seccomp default",
		`, "secret_env": ["A", "B_*"], "secret_keyring": ["k"], "secret_files": ["/run/k/*"]`: defaults + "; secret_env A, B_*; secret_keyring k; secret_files /run/k/*; seccomp default",
		`, "ulimits": ["nice"], "seccomp": "unconfined"`:                                      defaults + "; ulimits nice; seccomp none",
		`, "ssh": false`: defaults + "; seccomp default; ssh false",
		`, "capabilities": {"add": ["NET_RAW"]}, "insecure_registries": ["lab:5000"]`:                                     defaults + "; seccomp default; capabilities NET_RAW; insecure_registries lab:5000",
		`, "packages": {"require_signature": true, "keys": ["RWQcT2pLyuXTgoBgpdcA9xfTFoNfUCLmQVBlO9LOJ0cBvKSFeHdYMUcq"]}`: defaults + "; seccomp default; packages signed by 1 key",
	} {
		path := filepath.Join(t.TempDir(), "policy.json")
		if err := os.WriteFile(path, []byte(`{"version": 1`+fields+`}`), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := checkPolicy(ruled(t, path)); !got.OK || got.Found != path+": "+want {
			t.Errorf("%s: got %+v, want %s", fields, got, want)
		}
	}
	// A policy may be for many hosts: what this one lacks ends no agent.
	path := filepath.Join(t.TempDir(), "policy.json")
	if err := os.WriteFile(path, []byte(`{"version": 1, "users": {"names": ["deamon", "7"], "groups": ["no-such"]}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	unknown := path + `: users.names: "deamon" is no user of /etc/passwd and admits nobody; give its number; did you mean daemon?; ` +
		`users.groups: "no-such" is no group of /etc/group and admits nobody; give its number`
	if got := checkPolicy(ruled(t, path)); got.OK || got.Needed || got.Found != unknown {
		t.Errorf("unknown names: got %+v, want %s", got, unknown)
	}
	several := `{"version": 1, "mounts": [{"path": "/no/a"}], "roots": [{"path": "/no/b"}], "users": {"names": ["deamon"]}}`
	if err := os.WriteFile(path, []byte(several), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := checkPolicy(ruled(t, path)); got.OK || !got.Needed || !strings.HasPrefix(got.Found, path+": mounts[0]: stat /no/a: ") ||
		!strings.Contains(got.Found, "; roots[0]: stat /no/b: ") || !strings.Contains(got.Found, `; users.names: "deamon" is`) {
		t.Errorf("several faults: got %+v", got)
	}
	labelled := policy.Policy{}
	labelled.Label.AppArmor = "strict"
	if got := says(labelled); !strings.Contains(got, "; apparmor strict") {
		t.Errorf("a label: got %s", got)
	}
	if got := checkPolicy(Options{Policy: policy.Policy{File: "/p"}}); got.Found != "none at /p: "+defaults+"; seccomp default" {
		t.Errorf("no policy: got %+v", got)
	}
	if got := checkPolicy(Options{PolicyErr: errors.New("policy /p:1: x")}); got.OK || !got.Needed || got.Found != "policy /p:1: x" {
		t.Errorf("a broken one: got %+v", got)
	}
}

func TestNotifierRow(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "tell")
	if err := os.WriteFile(program, nil, 0o700); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "policy.json")
	for fields, want := range map[string]string{
		``: "none: notify in " + path + " names one",
		`, "notify": {"command": ["` + program + `"]}`:                                    program + " is told of every event, within 10s",
		`, "notify": {"url": "https://h/secret", "events": ["verdict"], "timeout": "1s"}`: "https://h is told of verdict, within 1s",
		`, "notify": {"url": "https://h/secret", "header_file": "` + dir + `/none"}`:      "https://h: header_file: no such file or directory",
	} {
		if err := os.WriteFile(path, []byte(`{"version": 1`+fields+`}`), 0o600); err != nil {
			t.Fatal(err)
		}
		got := checkNotifier(ruled(t, path))
		if got.OK != (got.Remedy == "") || got.Needed || got.Found != want {
			t.Errorf("%s: got %+v, want %s", fields, got, want)
		}
	}
}

// The work folder is the one that an agent would have.
func TestWorkFolderIsTheAgents(t *testing.T) {
	state := t.TempDir()
	t.Setenv("XDG_STATE_HOME", state)
	nomad := launcher.Found{Name: "nomad", WorkDir: filepath.Join(state, "task"), Origins: map[string]string{"work_dir": "NOMAD_TASK_DIR"}}
	for name, tt := range map[string]struct {
		found launcher.Found
		o     Options
		want  string
	}{
		"a shell's":      {launcher.Found{}, Options{}, state + "/muster, "},
		"of an app":      {launcher.Found{}, Options{AppID: "d1"}, state + "/muster/d1, "},
		"a launcher's":   {launcher.Found{AppID: "j7"}, Options{}, state + "/muster/j7, "},
		"of a task":      {nomad, Options{AppID: "d1"}, state + "/task (NOMAD_TASK_DIR), "},
		"named, for all": {nomad, Options{WorkDir: state + "/w"}, state + "/w (--work-dir), "},
	} {
		if got := checkWorkFolder(tt.found, tt.o); !got.OK || !strings.HasPrefix(got.Found, tt.want) {
			t.Errorf("%s: got %+v, want %s", name, got, tt.want)
		}
	}
	file := filepath.Join(state, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := checkWorkFolder(nomad, Options{WorkDir: file + "/w"}); got.OK || !strings.Contains(got.Found, file+"/w (--work-dir): "+file+" cannot be written") {
		t.Errorf("a folder that nobody can make: got %+v", got)
	}
	need.Root(t)
	closed := filepath.Join(state, "closed")
	if err := errors.Join(os.Mkdir(closed, 0o700), os.Chown(closed, 4242, 4242)); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{closed, closed + "/w", closed + "/a/w"} {
		got := checkWorkFolder(launcher.Found{}, Options{WorkDir: dir})
		if dir != closed && (got.OK || !strings.Contains(got.Found, "lies in "+closed+", which belongs to uid 4242")) {
			t.Errorf("%s: got %+v", dir, got)
		}
	}
}
