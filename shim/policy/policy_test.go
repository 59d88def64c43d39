package policy

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/muster-agent/muster/tests/need"
)

func TestPolicy(t *testing.T) {
	dir := t.TempDir()
	filter := filepath.Join(dir, "filter")
	writeMode(t, filter, strings.Repeat("x", 16), 0o644)
	odd := filepath.Join(dir, "odd")
	writeMode(t, odd, "xyz", 0o644)
	loose := filepath.Join(dir, "loose.pub")
	writeMode(t, loose, "x", 0o666)
	for _, tt := range []struct {
		name, text string
		mode       os.FileMode
		want       string // in the error; empty: it is read
	}{
		{"everything", `{"version":1,"refuse_root":true,"ulimits":["nice"],"mounts":[{"path":"/data"},{"path":"/a","to":"/b","read_only":true}],"seccomp":"` + filter + `"}`, 0o644, ""},
		{"a userns that there is not", `{"version":1,"userns":"none"}`, 0o644, `userns: got "none", want private or host`},
		{"a limit that needs no line", `{"version":1,"ulimits":["rtprio","nofile"]}`, 0o644, `ulimits[1]: got "nofile", want one of msgqueue, nice,`},
		{"a secret anywhere", `{"version":1,"secret_files":["/etc/keys/*","/*"]}`, 0o644, `secret_files[1]: got "/*", want an absolute path, or DIR/*`},
		{"no version", `{}`, 0o644, "got 0, want 1"},
		{"a slip", `{"version":1,"mount":[]}`, 0o644, `unknown field "mount"`},
		{"writable by all", `{"version":1}`, 0o666, "may be written by others (mode 0666)"},
		{"relative", `{"version":1,"mounts":[{"path":"data"}]}`, 0o644, `mounts[0]: got "data"`},
		{"the root", `{"version":1,"mounts":[{"path":"/"}]}`, 0o644, `mounts[0]: got "/"`},
		{"climbing", `{"version":1,"mounts":[{"path":"/a","to":"/b/../etc"}]}`, 0o644, `got "/b/../etc"`},
		{"a filter of odd size", `{"version":1,"seccomp":"` + odd + `"}`, 0o644, "got 3 bytes"},
		{"signatures without keys", `{"version":1,"packages":{"require_signature":true}}`, 0o644, "packages: require_signature: got no keys"},
		{"a key that is none", `{"version":1,"packages":{"keys":["RWx"]}}`, 0o644, `packages: keys[0]: got "RWx"`},
		{"a key in a file of anybody", `{"version":1,"packages":{"keys":["` + loose + `"]}}`, 0o644, "may be written by others (mode 0666)"},
		{"a file that is no key", `{"version":1,"packages":{"keys":["` + odd + `"]}}`, 0o644, "packages: keys[0]: " + odd},
		{"no filter", `{"version":1,"seccomp":"` + dir + `/none"}`, 0o644, "no such file"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "policy.json")
			writeMode(t, path, tt.text, tt.mode)
			p, err := Read(path, true)
			switch {
			case tt.want == "" && err != nil:
				t.Fatal(err)
			case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), path)):
				t.Fatalf("got error %v, want one with the path and %s", err, tt.want)
			case tt.want != "":
				return
			}
			mounts := []Mount{{Path: "/data", To: "/data"}, {Path: "/a", To: "/b", ReadOnly: true}}
			if diff := cmp.Diff(p.Mounts, mounts); diff != "" || !p.RefusesRoot() || len(p.Seccomp.program) != 16 {
				t.Errorf("policy %+v (-got +want):\n%s", p, diff)
			}
		})
	}
}

func TestUsernsOfTheCaller(t *testing.T) {
	yes := true
	for _, tt := range []struct {
		name, flag string
		given      Policy
		host, root bool   // its processes have the host's ids; root is refused
		want       string // in the error
	}{
		{"nothing said", "", Policy{}, false, true, ""},
		{"the host's ids", "host", Policy{}, true, false, ""},
		{"the policy has them too", "host", Policy{Userns: "host"}, true, false, ""},
		{"the policy forbids", "host", Policy{Userns: "private", File: "/p"}, false, true, "policy /p says private"},
		{"the policy refuses root", "host", Policy{RefuseRoot: &yes}, true, true, ""},
		{"narrower than the policy", "private", Policy{Userns: "host"}, false, true, ""},
		{"a slip", "none", Policy{}, false, true, `--userns "none"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := tt.given.WithUserns(tt.flag)
			if tt.want != "" {
				if err == nil || !strings.Contains(err.Error(), tt.want) {
					t.Errorf("got %v, want %s", err, tt.want)
				}
				return
			}
			if err != nil || got.HostIDs() != tt.host || got.RefusesRoot() != tt.root {
				t.Errorf("got host %t, refuses root %t, %v", got.HostIDs(), got.RefusesRoot(), err)
			}
		})
	}
}

func TestNoPolicy(t *testing.T) {
	path := filepath.Join(t.TempDir(), "policy.json")
	if _, err := Read(path, false); err != nil {
		t.Errorf("the default file need not be there: %v", err)
	}
	if _, err := Read(path, true); err == nil {
		t.Error("a file that was named must be there")
	}
}

// writeMode makes a file with just this mode, whatever the umask.
func writeMode(t *testing.T, path, text string, mode os.FileMode) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}

func TestSeccomp(t *testing.T) {
	dir := t.TempDir()
	filter := filepath.Join(dir, "filter")
	writeMode(t, filter, strings.Repeat("x", 16), 0o644)
	for _, tt := range []struct {
		name, text string
		says       string // which filter holds
		own        bool   // not nil
		want       string // in the error; empty: it is read
	}{
		{"nothing said", ``, "default", false, ""},
		{"none", `,"seccomp":"unconfined"`, "none", false, ""},
		{"a file", `,"seccomp":"` + filter + `"`, filter, true, ""},
		{"a file in the object", `,"seccomp":{"file":"` + filter + `"}`, filter, true, ""},
		{"changes", `,"seccomp":{"allow":["keyctl","bpf"],"deny":["ptrace"]}`, "default with keyctl, bpf without ptrace", true, ""},
		{"an empty object", `,"seccomp":{}`, "default", false, ""},
		{"a misspelled call", `,"seccomp":{"allow":["keyctI"]}`, "", false, `seccomp: allow[0]: no system call is called "keyctI": did you mean keyctl?`},
		{"no call at all", `,"seccomp":{"deny":["everything at once"]}`, "", false, `man 2 syscalls`},
		{"nothing could start", `,"seccomp":{"deny":["execve"]}`, "", false, "without execve no program can be started"},
		{"both ways", `,"seccomp":{"file":"` + filter + `","deny":["ptrace"]}`, "", false, "name one or the other"},
		{"a slip", `,"seccomp":{"alow":["bpf"]}`, "", false, `unknown field "alow"; known are allow, deny and file`},
		{"an empty word", `,"seccomp":""`, "", false, `seccomp: got "", want "unconfined", the path of a filter or an object`},
		{"a number", `,"seccomp":1`, "", false, "known are allow, deny and file"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := readText(t, tt.text, tt.want)
			if tt.want != "" {
				return
			}
			b, err := p.Seccomp.Filter()
			if err != nil || (b != nil) != tt.own || p.Seccomp.String() != tt.says || p.Seccomp.Unconfined != (tt.says == "none") {
				t.Errorf("%d bytes, %v, %q, unconfined %v", len(b), err, p.Seccomp.String(), p.Seccomp.Unconfined)
			}
		})
	}
}

func TestCapabilities(t *testing.T) {
	p := readText(t, `,"capabilities":{"add":["NET_RAW","CAP_SYS_PTRACE"]}`, "")
	if want := uint64(1<<unix.CAP_NET_RAW | 1<<unix.CAP_SYS_PTRACE); p.Capabilities.Added != want {
		t.Errorf("got %x, want %x", p.Capabilities.Added, want)
	}
	readText(t, `,"capabilities":{"add":["NET_RAW","NET_ROW"]}`, `capabilities: add[1]: no capability is called "NET_ROW" (did you mean NET_RAW?); known are CHOWN, DAC_OVERRIDE`)
	readText(t, `,"capabilities":{"drop":["CHOWN"]}`, `unknown field "drop"`)
}

func TestLabel(t *testing.T) {
	if p := readText(t, `,"label":{"apparmor":"strict"}`, ""); p.Label.AppArmor != "strict" {
		t.Errorf("got %q", p.Label.AppArmor)
	}
	readText(t, `,"label":{"apparmor":"strict (enforce)"}`, `label: apparmor: got "strict (enforce)", want the name of a profile`)
}

// readText reads a policy with text behind its version, and wants an error with want in it, or none.
func readText(t *testing.T, text, want string) Policy {
	t.Helper()
	path := filepath.Join(t.TempDir(), "policy.json")
	writeMode(t, path, `{"version":1`+text+`}`, 0o644)
	p, err := Read(path, true)
	if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
		t.Fatalf("got error %v, want %q", err, want)
	}
	return p
}

// TestAttackOtherPolicy: a user names a policy of his own on a host that has one.
func TestAttackOtherPolicy(t *testing.T) {
	dir := t.TempDir()
	host, mine, same := filepath.Join(dir, "host.json"), filepath.Join(dir, "mine.json"), filepath.Join(dir, "same.json")
	for _, path := range []string{host, mine} {
		if err := os.WriteFile(path, []byte(`{"version":1}`), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Link(host, same); err != nil {
		t.Fatal(err)
	}
	owner := os.Geteuid()
	err := replaces(mine, host, owner+1)
	if err == nil || !strings.Contains(err.Error(), "--policy "+mine) || !strings.Contains(err.Error(), host) {
		t.Errorf("another user's: got %v, want a refusal with both files", err)
	}
	for name, err := range map[string]error{
		"the host's own owner": replaces(mine, host, owner), "the host's own file": replaces(host, host, owner+1),
		"a name of the same file": replaces(same, host, owner+1),
		"a host without one":      replaces(mine, filepath.Join(dir, "none"), owner+1),
	} {
		if err != nil {
			t.Errorf("%s: got %v, want nil", name, err)
		}
	}
	if err := replaces(filepath.Join(dir, "none"), host, owner+1); err == nil {
		t.Error("a missing file in place of the host's: got nil")
	}
	if err := replaces(mine, filepath.Join(host, "below"), owner+1); err == nil {
		t.Error("a policy that cannot be looked up: got nil")
	}
}

// Whoever can rename a folder above the policy, or leads a link to it, can put another policy in its place.
func TestAttackPolicyIsReplaced(t *testing.T) {
	need.Root(t)
	const stranger = 64001
	below := func(uid int, mode os.FileMode) string {
		dir := filepath.Join(t.TempDir(), "above")
		if err := errors.Join(os.MkdirAll(filepath.Join(dir, "muster"), 0o755), os.Chmod(dir, mode),
			os.Chown(dir, uid, uid)); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, "muster", "policy.json")
		writeMode(t, path, `{"version":1}`, 0o644)
		return path
	}
	link := filepath.Join(t.TempDir(), "policy.json")
	safe := below(0, 0o755)
	if err := errors.Join(os.Symlink(safe, link), os.Lchown(link, stranger, stranger)); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct{ path, want string }{
		"in root's folders":          {safe, ""},
		"below another's folder":     {below(stranger, 0o755), "others could put another in its place"},
		"below a folder open to all": {below(0, 0o777), "others could put another in its place"},
		"by another's link":          {link, "belongs to uid 64001, who could lead it elsewhere"},
	} {
		_, err := Examine(tt.path, true)
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %q", name, err, tt.want)
		}
	}
}
