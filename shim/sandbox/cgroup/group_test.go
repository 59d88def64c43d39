package cgroup

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// bare is the v2 hierarchy of a hybrid host: it has no controllers, but all that kills, freezes and removes.
func bare(t *testing.T) (Tree, bool) {
	t.Helper()
	tree, err := Discover(Host{})
	if err != nil {
		t.Fatal(err)
	}
	const dir = "/sys/fs/cgroup/unified"
	return Tree{Mode: V2, Root: true, Dir: dir, Controllers: map[string]Controller{"memory": {Dir: dir, Why: ""}}}, tree.Mode == Hybrid && unix.Access(dir, unix.W_OK) == nil
}

func TestUnifiedWithoutControllers(t *testing.T) {
	tree, ok := bare(t)
	if !ok {
		return // TestConfine… does it with controllers
	}
	// No controller can be enabled here, so the folder is made here.
	app := "cgroup-test-bare"
	path := filepath.Join(tree.Dir, "muster", app, "one")
	if err := os.MkdirAll(filepath.Join(path, "below", "deeper"), 0o755); err != nil {
		t.Fatal(err)
	}
	g, err := newGroup(tree, app, "one", func(string) bool { return true })
	if err != nil {
		t.Fatal(err)
	}
	if err := g.openDirs(); err != nil {
		t.Fatal(err)
	}
	crowd := run(t, g, "as-crowd", "20")
	if got := crowd.line(); got != "ready" {
		t.Fatalf("crowd says %q", got)
	}
	deep := run(t, g, "as-idle")
	deep.line()
	if err := os.WriteFile(filepath.Join(path, "below", "deeper", "cgroup.procs"), []byte(strconv.Itoa(deep.Process.Pid)), 0); err != nil {
		t.Fatal(err)
	}
	if pids, err := g.Pids(); err != nil || len(pids) != 22 {
		t.Errorf("%d processes, %v; want 22", len(pids), err)
	}
	ctx := t.Context()
	if err := g.Freeze(ctx); err != nil {
		t.Error(err)
	}
	if err := g.Kill(ctx, deep.Process.Pid); err != nil {
		t.Error(err)
	}
	crowd.end()
	if pids, err := g.Pids(); err != nil || len(pids) != 1 {
		t.Errorf("left %v, %v; want only %d", pids, err, deep.Process.Pid)
	}
	removed(t, g)
	if status := deep.end(); status.Signal() != syscall.SIGKILL {
		t.Errorf("ended with %v", status)
	}
}

func TestRemoveAtRefuses(t *testing.T) {
	dir := t.TempDir()
	ours := filepath.Join(dir, "muster", "app", "one")
	if err := os.MkdirAll(ours, 0o755); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink("/sys/fs/cgroup", link); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		path string
		want error
	}{
		{ours, errNoCgroup},
		{"/sys/fs/cgroup/memory", fs.ErrInvalid},
		{"/sys/fs/cgroup/muster/one", fs.ErrInvalid},
		{"/muster/app/one", fs.ErrInvalid},
		{"muster/app/one", fs.ErrInvalid},
		{"/sys/fs/cgroup/memory/muster/app/../../..", fs.ErrInvalid},
		{"/sys/fs/cgroup/memory/muster/app/one/", fs.ErrInvalid},
		{filepath.Join(link, "memory/muster/app/one"), unix.ELOOP},
		{"/sys/fs/cgroup/no-such/muster/app/one", nil},
	} {
		if err := RemoveAt(t.Context(), []string{c.path}, nil); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.path, err, c.want)
		}
	}
	if _, err := os.Stat(ours); err != nil {
		t.Errorf("a folder of the disk was taken away: %v", err)
	}
}

func TestNamesThatAreNoFolder(t *testing.T) {
	tree := Tree{Mode: V1}
	for _, name := range []string{"", ".", "..", "a/b", "a\nb", string(make([]byte, 300))} {
		if _, err := New(t.Context(), tree, "app", name, Limits{}); !errors.Is(err, fs.ErrInvalid) {
			t.Errorf("instance %q: %v", name, err)
		}
		if _, err := New(t.Context(), tree, name, "one", Limits{}); !errors.Is(err, fs.ErrInvalid) {
			t.Errorf("app %q: %v", name, err)
		}
	}
}

func TestFolderIsOnCgroupfs(t *testing.T) {
	if f, err := openFolder(t.TempDir()); !errors.Is(err, errNoCgroup) {
		t.Errorf("%v, %v", f, err)
	}
	for _, path := range []string{"/proc/self/cwd", "/no/such"} {
		if f, err := openFolder(path); err == nil {
			t.Errorf("%s: opened %v", path, f)
		}
	}
	// The way for kernels without openat2 finds the same.
	dir := t.TempDir()
	if err := errors.Join(os.Mkdir(filepath.Join(dir, "a"), 0o755), os.Symlink("a", filepath.Join(dir, "b"))); err != nil {
		t.Fatal(err)
	}
	const flags = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_CLOEXEC | unix.O_NOFOLLOW
	for path, want := range map[string]error{dir + "/a": nil, dir + "/b": unix.ENOTDIR, dir + "/a/../a": unix.EXDEV, dir + "/c": unix.ENOENT} {
		fd, err := openStepwise(unix.AT_FDCWD, path, flags)
		if !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", path, err, want)
		}
		if err == nil {
			_ = unix.Close(fd)
		}
	}
}

func TestRules(t *testing.T) {
	if got := rules(nil); got != nil {
		t.Errorf("no list: %v", got)
	}
	var tail []specs.LinuxDeviceCgroup
	all := rules([]Device{{Type: 'c', Major: 195, Minor: 0, Access: "r"}, {Type: 'b', Major: 8, Minor: -1, Access: "rwm"}})
	if all[0].Allow || all[0].Type != "a" {
		t.Errorf("the first rule is %+v, want to deny all", all[0])
	}
	tail = all[len(general)+len(StandardDevices())+1:]
	n := func(i int64) *int64 { return &i }
	want := []specs.LinuxDeviceCgroup{
		{Allow: true, Type: "c", Major: n(195), Minor: n(0), Access: "r"},
		{Allow: false, Type: "c", Major: n(195), Minor: n(0), Access: "w"},
		{Allow: true, Type: "b", Major: n(8), Minor: n(-1), Access: "rwm"},
	}
	if diff := cmp.Diff(want, tail); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestResources(t *testing.T) {
	l := Limits{Memory: 100, Swap: 20, High: 90, Group: true, CPU: 2, Hard: true, Pids: 7}
	v1 := legacyResources(l, true)
	if *v1.Memory.Limit != 100 || *v1.Memory.Swap != 120 || *v1.CPU.Shares != 2048 || *v1.CPU.Quota != 200_000 || *v1.CPU.Period != 100_000 || *v1.Pids.Limit != 7 {
		t.Errorf("v1: %+v", v1)
	}
	if legacyResources(l, false).Memory.Swap != nil {
		t.Error("v1: a limit of swap that the kernel does not have")
	}
	all := func(string) bool { return true }
	v2 := unifiedResources(l, true, all)
	if *v2.Memory.Max != 100 || *v2.Memory.Swap != 20 || *v2.Memory.High != 90 || !*v2.Memory.OOMGroup || v2.CPU.Max != "200000 100000" || v2.Pids.Max != 7 {
		t.Errorf("v2: %+v %+v", v2.Memory, v2.CPU)
	}
	if one, two := *unifiedResources(Limits{CPU: 1}, true, all).CPU.Weight, *v2.CPU.Weight; one != 100 || two <= one {
		t.Errorf("weights: one core %d, want the default of 100; two %d", one, two)
	}
	none := unifiedResources(l, true, func(string) bool { return false })
	if none.Memory != nil || none.CPU != nil || none.Pids != nil {
		t.Errorf("controllers that are not there: %+v", none)
	}
}

func TestCountersText(t *testing.T) {
	const events = "low 0\noom 3\noom_kill 12\noom_group_kill 1\n"
	if keyed(events, "oom_kill") != 12 || keyed(events, "oom") != 3 || keyed(events, "kill") != 0 {
		t.Error("oom_kill, oom or kill of memory.events")
	}
}
