package policy

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/muster-agent/muster/shim/exit"
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
		{"a userns that there is not", `{"version":1,"userns":"none"}`, 0o644, `:1: userns: got "none", want private or host`},
		{"a limit that needs no line", `{"version":1,"ulimits":["rtprio","nofile"]}`, 0o644, `ulimits[1]: got "nofile", want one of msgqueue, nice,`},
		{"a secret anywhere", `{"version":1,"secret_files":["/etc/keys/*","/*"]}`, 0o644, `secret_files[1]: got "/*", want an absolute path, or DIR/*`},
		{"no version", `{}`, 0o644, `version: got none, want "version": 1`},
		{"a slip", `{"version":1,"mount":[]}`, 0o644, `:1: mount: no such field, want one of version, refuse_root,`},
		{"a history of nowhere", `{"version":1,"history":{}}`, 0o644, `:1: history.store: got none, want file:///PATH or hdfs://HOST/PATH`},
		{"a history in the web", `{"version":1,"history":{"store":"https://h/x"}}`, 0o644, `history.store: got "https:", in which no runs can be kept`},
		{"a history in all of a host", `{"version":1,"history":{"store":"file:///"}}`, 0o644, `history.store: got "file:///", which names no folder below /`},
		{"a history's path", `{"version":1,"history":{"store":"/data"}}`, 0o644, `history.store: got "/data" without a scheme`},
		{"a history with a password", `{"version":1,"history":{"store":"hdfs://u:secret@nn/x"}}`, 0o644, `history.store: got a user in the URL`},
		{"logs of a history", `{"version":1,"history":{"store":"file:///x","logs":"fail"}}`, 0o644, `history.logs: got "fail", want one of none, failed, all`},
		{"ages of a history", `{"version":1,"history":{"store":"file:///x","keep":{"age":"3 weeks","size":"50GB"}}}`, 0o644, `history.keep.age: got "3 weeks", want an age`},
		{"sizes of a history", `{"version":1,"history":{"store":"file:///x","keep":{"size":"9999999999999TiB"}}}`, 0o644, `history.keep.size: got "9999999999999TiB", want a size such as`},
		{"writable by all", `{"version":1}`, 0o666, "may be written by others (mode 0666)"},
		{"relative", `{"version":1,"mounts":[{"path":"data"}]}`, 0o644, `mounts[0].path: got "data"`},
		{"the root", `{"version":1,"mounts":[{"path":"/"}]}`, 0o644, `mounts[0].path: got "/"`},
		{"climbing", `{"version":1,"mounts":[{"path":"/a","to":"/b/../etc"}]}`, 0o644, `got "/b/../etc"`},
		{"a filter of odd size", `{"version":1,"seccomp":"` + odd + `"}`, 0o644, "got 3 bytes"},
		{"signatures without keys", `{"version":1,"packages":{"require_signature":true}}`, 0o644, "packages.require_signature: got no keys"},
		{"a key that is none", `{"version":1,"packages":{"keys":["RWx"]}}`, 0o644, `packages.keys[0]: got "RWx"`},
		{"a key in a file of anybody", `{"version":1,"packages":{"keys":["` + loose + `"]}}`, 0o644, "may be written by others (mode 0666)"},
		{"a file that is no key", `{"version":1,"packages":{"keys":["` + odd + `"]}}`, 0o644, "packages.keys[0]: " + odd},
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

// Each slip is told with its line, its field, what is there and what would do, and all of them at once.
func TestSlips(t *testing.T) {
	const names = "version, refuse_root, userns, mounts, roots, users, secret_env, secret_keyring, secret_files, ulimits, seccomp, " +
		"capabilities, label, ssh, insecure_registries, history, notify, packages"
	for text, want := range map[string][]string{
		"":                  {`: the file is empty, want an object, such as {"version": 1}`},
		"version: 1":        {":1: got the unreadable \"version\" at column 1, want JSON"},
		"# mine\n{}":        {":1: got invalid character '#' at start of value at column 1, want JSON; a comment begins with //"},
		"[]":                {`:1: got a list, want an object: {"version": 1, …}`},
		`{"version": "1"}`:  {`:1: version: got the text "1", want 1`},
		`{"version": 2}`:    {":1: version: got 2, want 1"},
		`{"version": null}`: {":1: version: got null, want 1"},
		`{"a%d": 1}`:        {":1: a%d: no such field, want one of " + names},
		`{"Version": 1}`:    {":1: Version: no such field, want one of " + names + "; did you mean version?"},
		"{\"version\": 1,\n\"mount\": [],\n\"secrets\": 1}": {
			":2: mount: no such field, want one of " + names + "; did you mean mounts?",
			":3: secrets: no such field, want one of " + names,
		},
		"{\"version\": 1,\n\"userns\": \"host\",\n\"userns\": \"private\"}": {":3: userns: got it a second time, want it once"},
		slip(`"userns": 1`):                                                  {":2: userns: got 1, want a text"},
		slip(`"userns": "privat"`):                                           {`:2: userns: got "privat", want private or host; did you mean private?`},
		slip(`"refuse_root": "yes"`):                                         {`:2: refuse_root: got the text "yes", want true or false`},
		slip(`"refuse_root": null`):                                          {":2: refuse_root: got null, want true or false"},
		slip(`"mounts": "/data"`):                                            {`:2: mounts: got the text "/data", want a list of objects, such as [{"path": "/data"}]`},
		slip(`"mounts": {"path": "/d"}`):                                     {`:2: mounts: got an object, want a list of objects, such as [{"path": "/data"}]`},
		slip(`"mounts": ["/data"]`):                                          {`:2: mounts[0]: got the text "/data", want an object, such as {"path": "/data"}`},
		slip(`"mounts": [{}]`):                                               {`:2: mounts[0].path: got "", want an absolute path below /, without . and .. for names`},
		slip(`"mounts": [{"path": 1}]`):                                      {":2: mounts[0].path: got 1, want a text"},
		slip(`"mounts": [{"pat": "/a"}]`):                                    {":2: mounts[0].pat: no such field, want one of path, to, read_only; did you mean path?"},
		slip(`"mounts": [{"path": "/a"}, {"path": "/b", "to": "/a"}]`):       {":2: mounts[1]: got /a, which mounts[0] mounts as well; want one of them"},
		slip(`"mounts": [{"path": "/a", "read_only": 1}]`):                   {":2: mounts[0].read_only: got 1, want true or false"},
		slip(`"roots": "/data"`):                                             {`:2: roots: got the text "/data", want a list of objects, such as [{"path": "/data"}]`},
		slip(`"roots": [1]`):                                                 {`:2: roots[0]: got 1, want an object, such as {"path": "/data"}`},
		slip(`"roots": [{"path": "/a"}, {"path": "/a", "read_only": true}]`): {":2: roots[1]: got /a, which roots[0] names as well; want one of them"},
		slip(`"users": ["alice"]`):                                           {":2: users: got a list, want an object"},
		slip(`"users": {"name": ["x"]}`):                                     {":2: users.name: no such field, want one of names, groups; did you mean names?"},
		slip(`"users": {"names": "root"}`):                                   {`:2: users.names: got the text "root", want a list of texts, such as ["…"]`},
		slip(`"users": {"names": [1000]}`):                                   {":2: users.names[0]: got 1000, want a text"},
		slip(`"users": {"names": ["deamon", "9-1", "", "1000-"], "groups": ["deamon", "a:b"]}`): {
			`:2: users.names[1]: got "9-1", want a name, a number or a range like 1000-59999`,
			`:2: users.names[2]: got "", want a name, a number or a range like 1000-59999`,
			`:2: users.names[3]: got "1000-", want a name, a number or a range like 1000-59999`,
			`:2: users.groups[1]: got "a:b", want a name, a number or a range like 1000-59999`,
		},
		slip(`"secret_env": "A"`):                                   {`:2: secret_env: got the text "A", want a list of texts, such as ["…"]`},
		slip(`"secret_env": ["", "VAULT_X"]`):                       {`:2: secret_env[0]: got "", want NAME or PREFIX_*`, `:2: secret_env[1]: got "VAULT_X", want NAME or PREFIX_*`},
		slip(`"secret_keyring": [""]`):                              {`:2: secret_keyring[0]: got "", want NAME or PREFIX*`},
		slip(`"secret_files": ["keys"]`):                            {`:2: secret_files[0]: got "keys", want an absolute path, or DIR/* for all below it`},
		slip(`"ulimits": ["rtpri"]`):                                {`:2: ulimits[0]: got "rtpri", want one of msgqueue, nice, rtprio, rttime, sigpending: a definition may raise the others; did you mean rtprio?`},
		slip(`"seccomp": []`):                                       {`:2: seccomp: got a list, want an object, "unconfined" or the path of a filter`},
		slip(`"seccomp": "unconfind"`):                              {`:2: seccomp: got "unconfind", want an object, "unconfined" or the absolute path of a filter; did you mean unconfined?`},
		slip(`"seccomp": {"file": "x"}`):                            {`:2: seccomp.file: got "x", want the absolute path of a filter`},
		slip(`"seccomp": {"allow": "bpf"}`):                         {`:2: seccomp.allow: got the text "bpf", want a list of texts, such as ["…"]`},
		slip(`"capabilities": ["NET_RAW"]`):                         {":2: capabilities: got a list, want an object"},
		slip(`"capabilities": {"add": [""]}`):                       {`:2: capabilities.add[0]: no capability is called "", want one of CHOWN, `},
		slip(`"label": "docker-default"`):                           {`:2: label: got the text "docker-default", want an object`},
		slip(`"label": {"selinux": "x"}`):                           {":2: label.selinux: no such field, want one of apparmor"},
		slip(`"insecure_registries": ["http://lab:5000"]`):          {`:2: insecure_registries[0]: got "http://lab:5000", want HOST or HOST:PORT`},
		slip(`"packages": {"require_signature": true, "keys": []}`): {":2: packages.require_signature: got no keys, so that no package could run"},
		slip(`"packages": {"keys": [""]}`):                          {`:2: packages.keys[0]: got "", want a public key (RW…) or the absolute path of one`},
		slip(`"packages": true`):                                    {":2: packages: got true, want an object"},
	} {
		path := filepath.Join(t.TempDir(), "policy.json")
		writeMode(t, path, text, 0o644)
		_, err := Read(path, true)
		if err == nil {
			t.Errorf("%s: read without an error", text)
			continue
		}
		lines := strings.Split(err.Error(), "\n")
		if len(lines) != len(want) {
			t.Errorf("%s: got %d slips, want %d:\n%v", text, len(lines), len(want), err)
			continue
		}
		for i, line := range lines {
			if !strings.HasPrefix(line, "policy "+path+want[i]) || exit.CodeOf(err) != exit.Forbidden {
				t.Errorf("%s: got\n%s\nwant (77)\npolicy %s%s", text, line, path, want[i])
			}
		}
	}
}

// slip is a policy with these fields in its second line.
func slip(fields string) string { return "{\"version\": 1,\n" + fields + "}" }

// What admits nothing and what says the default is no slip; comments say why a line is there.
func TestPolicyOfLittle(t *testing.T) {
	for _, fields := range []string{
		`,"mounts":[],"roots":[],"users":{},"secret_env":[],"seccomp":{"allow":[]},"packages":{"keys":[]}`,
		`,"users":{"names":["root","64999","1000-59999"],"groups":["root","64999"]}`,
		",\n// the lab's\n\"insecure_registries\":[\"lab:5000\"],\n",
	} {
		readText(t, fields, "")
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
		{"a misspelled call", `,"seccomp":{"allow":["keyctI"]}`, "", false, `seccomp.allow[0]: no system call is called "keyctI", want one that ` + "`man 2 syscalls` lists; did you mean keyctl?"},
		{"no call at all", `,"seccomp":{"deny":["everything at once"]}`, "", false, `man 2 syscalls`},
		{"nothing could start", `,"seccomp":{"deny":["execve"]}`, "", false, "without execve no program can be started"},
		{"both ways", `,"seccomp":{"file":"` + filter + `","deny":["ptrace"]}`, "", false, "name one or the other"},
		{"a slip", `,"seccomp":{"alow":["bpf"]}`, "", false, `seccomp.alow: no such field, want one of allow, deny, file; did you mean allow?`},
		{"an empty word", `,"seccomp":""`, "", false, `seccomp: got "", want an object, "unconfined" or the absolute path of a filter`},
		{"a number", `,"seccomp":1`, "", false, `seccomp: got 1, want an object, "unconfined" or the path of a filter`},
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
	readText(t, `,"capabilities":{"add":["NET_RAW","NET_ROW"]}`, `capabilities.add[1]: no capability is called "NET_ROW", want one of CHOWN, DAC_OVERRIDE`)
	readText(t, `,"capabilities":{"drop":["CHOWN"]}`, `capabilities.drop: no such field, want one of add`)
}

func TestLabel(t *testing.T) {
	if p := readText(t, `,"label":{"apparmor":"strict"}`, ""); p.Label.AppArmor != "strict" {
		t.Errorf("got %q", p.Label.AppArmor)
	}
	readText(t, `,"label":{"apparmor":"strict (enforce)"}`, `label.apparmor: got "strict (enforce)", want the name of a profile`)
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

func TestWithHistory(t *testing.T) {
	var written Policy
	err := written.read([]byte(`{"version":1,"insecure_registries":["h"],"history":{"store":"hdfs://nn/h","logs":"failed",
		"readers":"group","keep":{"age":"30d","size":"2TiB"}}}`))
	if h := written.History; err != nil || h.Store != "hdfs://nn/h" || h.Logs != LogsFailed || h.Readers != ReadersGroup ||
		h.Keep.Limit.Hours() != 30*24 || h.Keep.Bytes != 2<<40 || len(written.InsecureRegistries) != 1 {
		t.Errorf("got %+v, %v", written, err)
	}
	for _, c := range []struct{ own, store, logs, want, fails string }{
		{"", "", "", "", ""},
		{"", "file:///h", "all", "file:///h", ""},
		{"hdfs://nn/h", "file:///h", "", "hdfs://nn/h", ""},
		{"hdfs://nn/h", "", "all", "hdfs://nn/h", ""},
		{"", "", "all", "", "--history-logs all: no store is named"},
		{"", "h", "", "", `--history: got "h" without a scheme, want file:///PATH`},
		{"", "file:///h", "some", "", `--history-logs: got "some", want`},
	} {
		var own Policy
		own.History.Store = c.own
		p, err := own.WithHistory("--history", c.store, c.logs)
		if c.fails != "" {
			if err == nil || !strings.Contains(err.Error(), c.fails) || exit.CodeOf(err) != exit.Usage {
				t.Errorf("%v: got %v", c, err)
			}
			continue
		}
		if err != nil || p.History.Store != c.want {
			t.Errorf("%v: got %q, %v", c, p.History.Store, err)
		}
		if c.own == "" && c.want != "" && (p.History.Keep.Bytes != 50<<30 || p.History.Keep.Limit.Hours() != 90*24) {
			t.Errorf("%v: got %+v", c, p.History)
		}
	}
}
