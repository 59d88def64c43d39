package secret

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/fault"
	"github.com/muster-agent/muster/shim/files"
	"github.com/muster-agent/muster/shim/policy"
)

func TestSecretsComeFromFiles(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	if err := errors.Join(os.WriteFile(path("token"), []byte("s3cret\n"), 0o400), os.Symlink("token", path("link")),
		unix.Mkfifo(path("pipe"), 0o600), os.WriteFile(path("long"), nil, 0o600), os.Truncate(path("long"), 1<<40)); err != nil {
		t.Fatal(err)
	}
	from := Source{File: func(path string) (string, error) { return files.ReadHost(path, Most) }}
	for ref, want := range map[string]string{
		"file:" + path("token"): "s3cret",
		"file:" + path("link"):  "s3cret", // as mounted by launchers
		"file:" + path("pipe"):  "not a regular file",
		"file:" + dir:           "not a regular file",
		"file:/dev/zero":        "not a regular file",
		"file:" + path("long"):  "longer than",
		"file:" + path("none"):  "no such file",
	} {
		values, err := from.Read(map[string]string{"TOKEN": ref})
		if got := values["TOKEN"]; got != want && (err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "secret TOKEN")) {
			t.Errorf("%s: got %q, %v; want %s", ref, got, err, want)
		}
	}
}

// The agent of an ordinary user may not read a file: the refusal says whose the file is, who reads it, and what would do.
func TestFileThatTheAgentMayNotRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(path, nil, 0o640); err != nil {
		t.Fatal(err)
	}
	from := Source{File: func(path string) (string, error) {
		return "", &fs.PathError{Op: "open", Path: path, Err: unix.EACCES}
	}}
	uid := os.Geteuid()
	for _, tc := range []struct{ path, at string }{{path, path + " belongs to uid "}, {path + "/in", path + " belongs to uid "}} {
		_, err := from.Read(map[string]string{"KEY": "file:" + tc.path})
		want := fmt.Sprintf("secret KEY: open %s: permission denied: %s%d and gid %d with mode 0640, and the agent reads the file as uid %d: let this user read it, or name a variable of the agent, env:MUSTER_SECRET_…", tc.path, tc.at, uid, os.Getegid(), uid)
		if !fault.Is(err, registry.ClassNotPermitted) || err.Error() != want {
			t.Errorf("got  %v\nwant %s, not permitted", err, want)
		}
	}
}

// A definition names the tokens of its agent's launcher and registry.
func TestAttackVariablesOfTheAgent(t *testing.T) {
	for _, name := range []string{"VAULT_TOKEN", "NOMAD_TOKEN", "CONSUL_HTTP_TOKEN", "AWS_SECRET_ACCESS_KEY", "MUSTER_SECRET_DB", "SITE_DB"} {
		t.Setenv(name, "hunter2")
	}
	from := Source{Policy: policy.Policy{SecretEnv: []string{"SITE_*"}, File: "/etc/muster/policy.json"}}
	for name, given := range map[string]bool{
		"VAULT_TOKEN": false, "NOMAD_TOKEN": false, "CONSUL_HTTP_TOKEN": false, "AWS_SECRET_ACCESS_KEY": false,
		"MUSTER_SECRET_DB": true, "SITE_DB": true,
	} {
		values, err := from.Read(map[string]string{"TOKEN": "env:" + name})
		switch {
		case given && (err != nil || values["TOKEN"] != "hunter2"):
			t.Errorf("%s: got %q, %v, want its value", name, values["TOKEN"], err)
		case given:
		case values["TOKEN"] != "" || !fault.Is(err, registry.ClassNotPermitted):
			t.Errorf("%s: got %q, %v, want a refusal", name, values["TOKEN"], err)
		case !strings.Contains(err.Error(), "secret TOKEN: variable "+name) ||
			strings.Contains(err.Error(), `"secret_env": ["`+name+`"]} to /etc/muster/policy.json`) != (name == "AWS_SECRET_ACCESS_KEY"):
			t.Errorf("%s: %v, want the secret, the variable and, where the policy may list it, its line", name, err)
		}
	}
}
