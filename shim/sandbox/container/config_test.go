package container

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/opencontainers/cgroups"
	"github.com/opencontainers/runc/libcontainer/configs"
	"golang.org/x/sys/unix"
)

func TestIDsAreNeverShared(t *testing.T) {
	seen := map[string]Spec{}
	for _, s := range []Spec{
		{App: "a", Instance: "b-0"}, {App: "a-b", Instance: "0"}, {App: "a~", Instance: "b-0"}, {App: "a", Instance: "~b-0"}, {App: "at", Instance: "b-0"}, {App: "a_b", Instance: "c-0"},
	} {
		id := s.id()
		if other, ok := seen[id]; ok {
			t.Errorf("%+v and %+v are both %s", s, other, id)
		}
		if strings.Trim(id, "abcdefghijklmnopqrstuvwxyz0123456789_+-.") != "" {
			t.Errorf("%s is no id for libcontainer", id)
		}
		seen[id] = s
	}
}

func TestCapabilitiesAreNoMoreThanOurs(t *testing.T) {
	all := capabilities(^uint64(0), 1<<unix.CAP_CHOWN|1<<unix.CAP_KILL)
	if want := []string{"CAP_CHOWN", "CAP_KILL", "CAP_SYS_RESOURCE"}; !slices.Equal(all.Bounding, want) || !slices.Equal(all.Permitted, want) ||
		!slices.Equal(all.Effective, want) || all.Ambient != nil || all.Inheritable != nil {
		t.Errorf("got %+v, want %v", all, want)
	}
	got := capabilities(1<<unix.CAP_CHOWN|1<<unix.CAP_SYS_ADMIN, 1<<unix.CAP_CHOWN|1<<unix.CAP_KILL)
	if !slices.Equal(got.Effective, []string{"CAP_CHOWN"}) {
		t.Errorf("of those that we have: %v", got.Effective)
	}
}

func TestMountsThatAreRefused(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct {
		mount Mount
		want  string
	}{
		{Mount{From: dir, To: "/"}, "want absolute paths"},
		{Mount{From: dir, To: "/.."}, "want absolute paths"},
		{Mount{From: "x", To: "/x"}, "want absolute paths"},
		{Mount{From: dir, To: "x"}, "want absolute paths"},
		{Mount{From: dir + "/none", To: "/x"}, "mount " + dir + "/none: file does not exist"},
		{Mount{From: dir, To: "/x", Options: []string{"suid"}}, `option "suid" is not known`},
	} {
		if m, err := c.mount.mount(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %+v, %v, want %q", c.mount, m, err, c.want)
		}
	}
	m, err := Mount{From: dir, To: "/x/", ReadOnly: true, Options: []string{"rbind", "noexec"}}.mount()
	if err != nil {
		t.Fatal(err)
	}
	if want := unix.MS_BIND | unix.MS_REC | unix.MS_RDONLY | unix.MS_NOEXEC; m.Flags != want || m.Destination != "/x" || m.RecAttr.Attr_set != unix.MOUNT_ATTR_RDONLY {
		t.Errorf("got %+v", m)
	}
}

func TestNodesLieBelowDev(t *testing.T) {
	for _, n := range []Node{
		{Path: "/etc/x", Type: 'c'}, {Path: "/dev/../etc/x", Type: 'c'}, {Path: "dev/x", Type: 'c'}, {Path: "/dev", Type: 'c'}, {Path: "/dev/x", Type: 'p'},
	} {
		if _, err := deviceNodes([]Node{n}); err == nil {
			t.Errorf("%+v was taken", n)
		}
	}
	nodes, err := deviceNodes([]Node{{Path: "/dev/infiniband/uverbs0", Type: 'c', Major: 231, Minor: 192, Mode: 0o660, GID: 5}})
	if err != nil {
		t.Fatal(err)
	}
	if last := nodes[len(nodes)-1]; len(nodes) != 7 || last.FileMode != 0o660 || last.Gid != 5 || last.Major != 231 {
		t.Errorf("got %d, %+v", len(nodes), last)
	}
}

func TestHooksHaveAnEnvironmentOfTheirOwn(t *testing.T) {
	t.Setenv("LD_PRELOAD", "/evil.so")
	s := Spec{Dir: t.TempDir(), Hooks: []Hook{{Stage: "createContainer", Path: "/bin/true"}, {Stage: "prestart", Path: "/bin/true", Env: []string{"A=1"}}}}
	var c configs.Config
	if err := s.hooks(&c); err != nil {
		t.Fatal(err)
	}
	for _, list := range c.Hooks {
		for _, h := range list {
			env := h.(configs.CommandHook).Env
			if len(env) != 1 || strings.HasPrefix(env[0], "LD_") {
				t.Errorf("%v", env)
			}
		}
	}
	if _, err := os.Stat(filepath.Join(s.Dir, "config.json")); err != nil {
		t.Error(err)
	}
	if err := (Spec{Hooks: []Hook{{Stage: "poststop", Path: "/bin/true"}}}).hooks(&c); err == nil {
		t.Error("a stage that is not known was taken")
	}
}

func TestHostsNameTheContainer(t *testing.T) {
	text := string(Spec{Hostname: "worker-3", Address: "10.0.0.7"}.hosts())
	if !strings.HasSuffix(text, "\n10.0.0.7\tworker-3\n") || !strings.Contains(text, "localhost") {
		t.Errorf("got %q", text)
	}
	if text := string(Spec{}.hosts()); strings.Contains(text, "127.0.1.1\t\n") {
		t.Errorf("got %q", text)
	}
}

func TestHierarchiesThatANamespaceCanMount(t *testing.T) {
	for _, c := range []struct {
		name       string
		controller string
		mount      cgroups.Mount
		want       bool
	}{
		{"one controller", "memory", cgroups.Mount{Mountpoint: "/sys/fs/cgroup/memory", Subsystems: []string{"memory"}}, true},
		{"two, in another order", "cpu", cgroups.Mount{Mountpoint: "/sys/fs/cgroup/cpu,cpuacct", Subsystems: []string{"cpuacct", "cpu"}}, true},
		{"one of two", "cpu", cgroups.Mount{Mountpoint: "/sys/fs/cgroup/cpu", Subsystems: []string{"cpu", "cpuacct"}}, false},
		{"systemd's", "name=systemd", cgroups.Mount{Mountpoint: "/sys/fs/cgroup/systemd", Subsystems: []string{"systemd"}}, true},
		{"another init's", "name=openrc", cgroups.Mount{Mountpoint: "/sys/fs/cgroup/openrc", Subsystems: []string{"openrc"}}, false},
		{"elsewhere", "memory", cgroups.Mount{Mountpoint: "/mnt/limits", Subsystems: []string{"memory"}}, false},
	} {
		if got := mountedByName(map[string]string{c.controller: "/"}, []cgroups.Mount{c.mount}, nil); got != c.want {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
	}
	if mountedByName(nil, nil, os.ErrNotExist) {
		t.Error("mounts that cannot be read were taken for good")
	}
}

func TestTooManyLayersAreAnError(t *testing.T) {
	dir := t.TempDir()
	layer := filepath.Join(dir, strings.Repeat("n", 200))
	if err := os.MkdirAll(filepath.Join(dir, "c"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(layer, 0o755); err != nil {
		t.Fatal(err)
	}
	s := Spec{Dir: filepath.Join(dir, "c"), Root: Root{Layers: []string{layer}, Entries: []Entry{{Name: "x", Dir: true, Layers: slices.Repeat([]string{layer}, 100)}}}}
	root := filepath.Join(s.Dir, "root")
	if err := os.Mkdir(root, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := (&s).imageRoot(root, identity{rootless: true}); err == nil || !strings.Contains(err.Error(), "100 layers: mount(2) takes no more than") {
		t.Errorf("got %v", err)
	}
}

func TestWhyAContainerCouldNotBeMade(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{
			`unable to start container process: error during container init: error mounting "/w" to rootfs at "/x/y": create mountpoint for /x/y mount: make mountpoint "/x/y": mkdir: read-only file system`,
			`mount: error mounting "/w" to rootfs at "/x/y": /x/y mount: make mountpoint "/x/y": mkdir: read-only file system (the folder is not there in the host's root, which is read-only)`,
		},
		{
			`unable to start container process: error during container init: error mounting "proc" to rootfs at "/proc": mount proc:/proc: operation not permitted`,
			`mount: error mounting "proc" to rootfs at "/proc": mount proc:/proc: operation not permitted (this process is in a container that masks parts of /proc: its launcher must not)`,
		},
		{"something else", "something else"},
	} {
		cause := errors.New(c.text)
		got := explain(cause)
		if got.Error() != c.want || !errors.Is(got, cause) {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
}

func TestProbeSaysYesHere(t *testing.T) {
	if ok, why := Probe(t.Context()); !ok && os.Geteuid() == 0 {
		t.Errorf("no container for root: %s", why)
	}
	initialised = false
	defer func() { initialised = true }()
	if ok, why := Probe(t.Context()); ok || why != errNoInit.Error() {
		t.Errorf("without a door: %v, %s", ok, why)
	}
	if _, err := Run(t.Context(), Spec{Dir: t.TempDir()}); !errors.Is(err, errNoInit) {
		t.Errorf("without a door: %v", err)
	}
}
