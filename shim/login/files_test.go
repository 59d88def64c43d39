package login

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestFiles(t *testing.T) {
	h, err := HostOf("token", "app", "worker-0", "fd00::1", 20001)
	if err != nil {
		t.Fatal(err)
	}
	h.Aliases = []string{"app-worker-0"}
	got := Files("/a b", []Host{h})
	want := `Host worker-0 app-worker-0
  HostName fd00::1
  Port 20001
  User muster
  HostKeyAlias worker-0
  IdentityFile "/a b/key"
  IdentitiesOnly yes
  UserKnownHostsFile "/a b/known_hosts"
  GlobalKnownHostsFile /dev/null
  StrictHostKeyChecking yes
  PreferredAuthentications publickey
`
	if got[ConfigFile] != want {
		t.Errorf("got\n%s", got[ConfigFile])
	}
	if text := got[knownHosts]; !strings.HasPrefix(text, "worker-0 ssh-ed25519 AAAA") || strings.Count(text, "\n") != 1 {
		t.Errorf("got %s", text)
	}
	again, err := HostOf("token", "app", "worker-0", "fd00::1", 20001)
	other, otherErr := HostOf("token2", "app", "worker-0", "fd00::1", 20001)
	if err != nil || otherErr != nil || again.Key != h.Key || other.Key == h.Key {
		t.Errorf("got %s, %s and %s", h.Key, again.Key, other.Key)
	}
	if _, err := HostOf("", "app", "worker-0", "h", 1); err == nil {
		t.Error("a run without a token has a key")
	}
}

// TestWrapper: the program behind the wrapper gets the configuration for the gang's hosts alone.
func TestWrapper(t *testing.T) {
	top := t.TempDir()
	dir, theirs := filepath.Join(top, "my ssh"), filepath.Join(top, "real")
	for path, text := range map[string]string{
		filepath.Join(dir, "bin/ssh"): Wrapper(dir), filepath.Join(dir, "bin/scp"): Wrapper(dir),
		filepath.Join(theirs, "ssh"):   "#!/bin/sh\nfor a; do printf '<%s>' \"$a\"; done\n",
		filepath.Join(dir, ConfigFile): Files(dir, []Host{{Name: "worker-0"}, {Name: "worker-1"}})[ConfigFile],
	} {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	with := "<-F><" + dir + "/config>"
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"worker-1", "a  b"}, with + "<worker-1><a  b>"},
		{[]string{"-v", "root@worker-0"}, with + "<-v><root@worker-0>"},
		{[]string{"worker-0:/x", "."}, with + "<worker-0:/x><.>"},
		{[]string{"elsewhere", "*"}, "<elsewhere><*>"},
		{[]string{"worker-11"}, "<worker-11>"},
	} {
		cmd := exec.Command(filepath.Join(dir, "bin/ssh"), tt.args...)
		cmd.Env = []string{"PATH=" + dir + "/bin:" + theirs + ":/usr/bin:/bin"}
		if out, err := cmd.CombinedOutput(); err != nil || string(out) != tt.want {
			t.Errorf("%q: got %s, %v; want %s", tt.args, out, err, tt.want)
		}
	}
	cmd := exec.Command(filepath.Join(dir, "bin/scp"), "worker-0:x", ".")
	cmd.Env = []string{"PATH=" + dir + "/bin:" + theirs}
	if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "scp: no scp in PATH: install") {
		t.Errorf("got %s, %v", out, err)
	}
}
