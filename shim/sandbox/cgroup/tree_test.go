package cgroup

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// fixture makes a root folder with the given files; a name that ends with / is a folder.
func fixture(t *testing.T, files map[string]string) Host {
	t.Helper()
	root := t.TempDir()
	for path, text := range files {
		full := filepath.Join(root, path)
		err := os.MkdirAll(filepath.Dir(full), 0o755)
		if strings.HasSuffix(path, "/") {
			err = errors.Join(err, os.MkdirAll(full, 0o755))
		} else {
			err = errors.Join(err, os.WriteFile(full, []byte(text), 0o644))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return Host{root}
}

// of joins what all machines of a kind have with what one has.
func of(all ...map[string]string) map[string]string {
	files := map[string]string{}
	for _, m := range all {
		maps.Copy(files, m)
	}
	return files
}

const (
	v1Mounts = `22 1 0:20 / /sys rw - sysfs sysfs rw
31 22 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755
32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,nosuid - cgroup cgroup rw,cpu,cpuacct
33 31 0:30 / /sys/fs/cgroup/memory rw shared:9 - cgroup cgroup rw,memory
34 31 0:31 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids
35 31 0:32 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,xattr,name=systemd
`
	unifiedMount = "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
	v2Mount      = "41 22 0:38 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
)

// root of the host has all capabilities.
var rootUser = map[string]string{
	"/proc/self/uid_map": "         0          0 4294967295\n",
	"/proc/self/status":  "Name:\tmuster\nCapPrm:\t000001ffffffffff\nCapEff:\t000001ffffffffff\n",
	"/proc/meminfo":      "MemTotal:       16384000 kB\n",
}

// v2Dir are the files of a v2 cgroup with controllers.
func v2Dir(dir, controllers, enabled string) map[string]string {
	return map[string]string{
		dir + "/cgroup.procs": "", dir + "/cgroup.type": "domain\n", dir + "/cgroup.controllers": controllers + "\n",
		dir + "/cgroup.subtree_control": enabled, dir + "/cgroup.kill": "", dir + "/memory.max": "max\n",
		dir + "/memory.high": "max\n", dir + "/memory.oom.group": "0\n", dir + "/memory.peak": "0\n", dir + "/memory.swap.max": "max\n",
	}
}

func TestDiscover(t *testing.T) {
	const v2Features = "cgroup.kill memory.high memory.oom.group memory.peak"
	for _, c := range []struct {
		name     string
		files    map[string]string
		mode     Mode
		dirs     map[string]string // by controller that can be used
		why      map[string]string // part of the reason
		features string
		swap     bool
		root     bool
		ours     bool // delegated
	}{
		{
			name: "v1, nested memory, two controllers in one hierarchy",
			files: of(rootUser, map[string]string{
				"/proc/self/mountinfo": v1Mounts,
				"/proc/self/cgroup":    "5:name=systemd:/\n4:pids:/\n3:memory:/jobs/7\n2:cpu,cpuacct:/\n",
				"/sys/fs/cgroup/memory/jobs/7/memory.memsw.limit_in_bytes": "1\n",
				"/sys/fs/cgroup/pids/": "", "/sys/fs/cgroup/cpu,cpuacct/": "", "/sys/fs/cgroup/systemd/": "",
			}),
			mode: V1, swap: true,
			dirs: map[string]string{
				"memory": "/sys/fs/cgroup/memory/jobs/7", "cpu": "/sys/fs/cgroup/cpu,cpuacct", "cpuacct": "/sys/fs/cgroup/cpu,cpuacct",
				"pids": "/sys/fs/cgroup/pids", "name=systemd": "/sys/fs/cgroup/systemd",
			},
			why: map[string]string{"devices": "no such controller", "freezer": "no such controller"},
		},
		{
			name: "hybrid: the unified tree has no controller of ours",
			files: of(rootUser, map[string]string{
				"/proc/self/mountinfo":   v1Mounts + unifiedMount,
				"/proc/self/cgroup":      "4:pids:/\n3:memory:/\n2:cpu,cpuacct:/\n0::/\n",
				"/sys/fs/cgroup/memory/": "", "/sys/fs/cgroup/pids/": "", "/sys/fs/cgroup/cpu,cpuacct/": "",
				"/sys/fs/cgroup/unified/cgroup.controllers": "hugetlb\n",
			}),
			mode: Hybrid,
			dirs: map[string]string{
				"memory": "/sys/fs/cgroup/memory", "cpu": "/sys/fs/cgroup/cpu,cpuacct", "cpuacct": "/sys/fs/cgroup/cpu,cpuacct", "pids": "/sys/fs/cgroup/pids",
			},
		},
		{
			name: "v1 in a container that shares the host's namespace of cgroups",
			files: of(rootUser, map[string]string{
				"/proc/self/mountinfo": "33 31 0:30 /docker/abc/docker/def /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n" +
					"34 31 0:31 /docker/other /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n",
				"/proc/self/cgroup":      "4:pids:/docker/abc\n3:memory:/docker/abc/docker/def\n",
				"/sys/fs/cgroup/memory/": "", "/sys/fs/cgroup/pids/": "",
			}),
			mode: V1,
			dirs: map[string]string{"memory": "/sys/fs/cgroup/memory"},
			why:  map[string]string{"pids": "lies outside of what is mounted at /sys/fs/cgroup/pids", "cpu": "no such controller"},
		},
		{
			name: "v2, the host's root",
			files: of(rootUser, map[string]string{
				"/proc/self/mountinfo": v2Mount, "/proc/self/cgroup": "0::/\n", "/proc/sys/kernel/osrelease": "5.15.0-91\n",
				"/proc/swaps": "", "/proc/cmdline": "quiet\n", "/sys/fs/cgroup/cgroup.procs": "1\n2\n",
				"/sys/fs/cgroup/cgroup.controllers": "cpuset cpu io memory pids\n", "/sys/fs/cgroup/cgroup.subtree_control": "",
			}),
			mode: V2, root: true, swap: true, features: "cgroup.kill memory.high memory.oom.group",
			dirs: map[string]string{"memory": "/sys/fs/cgroup", "cpu": "/sys/fs/cgroup", "pids": "/sys/fs/cgroup"},
		},
		{
			name: "v2, a unit that hands down memory and pids, its agents in their leaf",
			files: of(rootUser, map[string]string{
				"/proc/self/mountinfo": v2Mount, "/proc/self/cgroup": "0::/system.slice/muster.service/muster-agent\n",
			}, v2Dir("/sys/fs/cgroup/system.slice/muster.service", "memory pids", "memory pids")),
			mode: V2, swap: true, features: v2Features,
			dirs: map[string]string{"memory": "/sys/fs/cgroup/system.slice/muster.service", "pids": "/sys/fs/cgroup/system.slice/muster.service"},
			why:  map[string]string{"cpu": "not delegated to /sys/fs/cgroup/system.slice/muster.service"},
		},
		{
			name: "v2, a user's session with a shell in it",
			files: of(rootUser, map[string]string{
				"/proc/self/mountinfo": v2Mount, "/proc/self/cgroup": "0::/user.slice/user-0.slice/session-3.scope\n",
			}, v2Dir("/sys/fs/cgroup/user.slice/user-0.slice/session-3.scope", "cpu memory pids", ""),
				map[string]string{"/sys/fs/cgroup/user.slice/user-0.slice/session-3.scope/cgroup.procs": "4711\n"}),
			mode: V2, swap: true, features: v2Features, dirs: map[string]string{},
			why: map[string]string{"memory": "not delegated to us and process 4711 is in it"},
		},
		{
			name: "v2, the root of a container's namespace",
			files: of(rootUser, map[string]string{"/proc/self/mountinfo": v2Mount, "/proc/self/cgroup": "0::/\n"},
				v2Dir("/sys/fs/cgroup", "cpu memory pids", ""), map[string]string{"/sys/fs/cgroup/cgroup.procs": "1\n7\n"}),
			mode: V2, swap: true, features: v2Features, ours: true,
			dirs: map[string]string{"memory": "/sys/fs/cgroup", "cpu": "/sys/fs/cgroup", "pids": "/sys/fs/cgroup"},
		},
		{
			name: "v2, seen from a namespace below",
			files: of(rootUser, map[string]string{
				"/proc/self/mountinfo": "41 22 0:38 /../.. /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n", "/proc/self/cgroup": "0::/\n",
			}),
			mode: V2, dirs: map[string]string{}, why: map[string]string{"memory": "lies outside of what is mounted at /sys/fs/cgroup"},
		},
		{
			name:  "nothing is mounted",
			files: of(rootUser, map[string]string{"/proc/self/mountinfo": "22 1 0:20 / /sys rw - sysfs sysfs rw\n", "/proc/self/cgroup": "0::/\n"}),
			mode:  None, dirs: map[string]string{},
		},
		{name: "a kernel without cgroups", files: rootUser, mode: None, dirs: map[string]string{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			tree, err := Discover(fixture(t, c.files))
			if err != nil {
				t.Fatal(err)
			}
			if tree.Mode != c.mode || tree.Root != c.root || tree.Delegated != c.ours || tree.Swap != c.swap {
				t.Errorf("mode %s, root %v, delegated %v, swap %v; want %s %v %v %v",
					tree.Mode, tree.Root, tree.Delegated, tree.Swap, c.mode, c.root, c.ours, c.swap)
			}
			usable := map[string]string{}
			for name, controller := range tree.Controllers {
				if controller.Why == "" {
					usable[name] = controller.Dir
				}
			}
			if diff := cmp.Diff(c.dirs, usable); diff != "" {
				t.Errorf("usable -want +got:\n%s", diff)
			}
			for name, part := range c.why {
				if got := tree.Controllers[name].Why; !strings.Contains(got, part) {
					t.Errorf("%s: %q, want …%s…", name, got, part)
				}
			}
			if got := strings.Join(slices.Sorted(slices.Values(tree.Features)), " "); got != c.features {
				t.Errorf("features %q, want %q", got, c.features)
			}
		})
	}
}

func TestDiscoverRefusesWhatIsNoFileOfTheKernel(t *testing.T) {
	for name, files := range map[string]map[string]string{
		"cgroup":    {"/proc/self/cgroup": "memory\n", "/proc/self/mountinfo": ""},
		"mountinfo": {"/proc/self/cgroup": "0::/\n", "/proc/self/mountinfo": "33 31 0:30 / /x rw cgroup\n"},
	} {
		if tree, err := Discover(fixture(t, files)); !errors.Is(err, errFormat) {
			t.Errorf("%s: %+v, %v", name, tree, err)
		}
	}
}

func FuzzMounts(f *testing.F) {
	f.Add(v1Mounts+unifiedMount, "/a/b")
	f.Fuzz(func(t *testing.T, text, own string) {
		mounts, err := parseMounts(text)
		for _, m := range mounts {
			if dir, ok := m.folder("/" + own); ok && err == nil && strings.HasPrefix(m.point, "/") && !within(dir, filepath.Clean(m.point)) {
				t.Errorf("cgroup %q seen at %q, outside of its mount %q", own, dir, m.point)
			}
		}
	})
}

func within(path, dir string) bool {
	return path == dir || dir == "/" || strings.HasPrefix(path, dir+"/")
}

func TestCannot(t *testing.T) {
	free := map[string]Controller{"memory": {}, "cpu": {}, "pids": {}}
	high := []string{"memory.high"}
	for _, c := range []struct {
		name string
		tree Tree
		want []string
	}{
		{"everything", Tree{Controllers: free, Swap: true, Features: high}, nil},
		{"no cgroups", Tree{NoDevices: noMount}, []string{"cpu_hard", "gpus", "high_mb", "memory_mb", "pids", "swap_mb", "vcores"}},
		{"v1", Tree{Controllers: free, Swap: true}, []string{"high_mb"}},
		{"swap is not counted", Tree{Controllers: free, Features: high}, []string{"swap_mb"}},
		{"ordinary user", Tree{Controllers: free, Swap: true, Features: high, NoDevices: "not permitted"}, []string{"gpus"}},
		{
			"cpu is not delegated",
			Tree{Controllers: map[string]Controller{"memory": {}, "pids": {}, "cpu": {Why: "x"}}, Swap: true, Features: high},
			[]string{"cpu_hard", "vcores"},
		},
	} {
		if diff := cmp.Diff(c.want, slices.Sorted(maps.Keys(c.tree.Cannot()))); diff != "" {
			t.Errorf("%s: -want +got:\n%s", c.name, diff)
		}
	}
}

func TestEnvelope(t *testing.T) {
	v1 := map[string]string{
		"/proc/self/mountinfo": v1Mounts, "/proc/self/cgroup": "4:pids:/\n3:memory:/jobs/7\n2:cpu,cpuacct:/jobs\n", "/sys/fs/cgroup/pids/": "",
		"/sys/fs/cgroup/memory/memory.limit_in_bytes":            "9223372036854771712\n",
		"/sys/fs/cgroup/memory/jobs/memory.limit_in_bytes":       "2147483648\n",
		"/sys/fs/cgroup/memory/jobs/7/memory.limit_in_bytes":     "4294967296\n",
		"/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us":            "-1\n",
		"/sys/fs/cgroup/cpu,cpuacct/jobs/cpu.cfs_quota_us":       "250000\n",
		"/sys/fs/cgroup/cpu,cpuacct/jobs/cpu.cfs_period_us":      "100000\n",
		"/sys/fs/cgroup/memory/jobs/other/memory.limit_in_bytes": "1048576\n",
	}
	unit := "/sys/fs/cgroup/system.slice/muster.service"
	v2 := of(map[string]string{"/proc/self/mountinfo": v2Mount, "/proc/self/cgroup": "0::/system.slice/muster.service/muster-agent\n"},
		v2Dir(unit, "cpu memory pids", "cpu memory pids"),
		map[string]string{unit + "/memory.max": "1073741824\n", unit + "/cpu.max": "50000 100000\n", "/sys/fs/cgroup/system.slice/cpu.max": "max 100000\n"})
	for _, c := range []struct {
		name               string
		files              map[string]string
		memoryMB, wantCore int
	}{
		{"v1: the one above is tighter", of(rootUser, v1), 2048, 2},
		{"v1: more than the machine has is none", of(rootUser, v1, map[string]string{"/proc/meminfo": "MemTotal: 1024 kB\n"}), 0, 2},
		{"v2: of the unit, above the leaf; at least one core", of(rootUser, v2), 1024, 1},
		{"no limits", of(rootUser, v2, map[string]string{unit + "/memory.max": "max\n", unit + "/cpu.max": "max 100000\n"}), 0, 0},
		{"no cgroups", rootUser, 0, 0},
	} {
		tree, err := Discover(fixture(t, c.files))
		if err != nil {
			t.Fatal(err)
		}
		if memory, cores := tree.Envelope(); memory != c.memoryMB || cores != c.wantCore {
			t.Errorf("%s: %d MB, %d cores; want %d, %d", c.name, memory, cores, c.memoryMB, c.wantCore)
		}
	}
}

func TestMissing(t *testing.T) {
	if diff := cmp.Diff([]string{"cgroup.kill", "memory.high", "memory.oom.group", "memory.peak"}, Tree{Mode: V1}.Missing()); diff != "" {
		t.Errorf("v1 -want +got:\n%s", diff)
	}
	if got := (Tree{Mode: V2, Features: []string{"memory.high", "memory.oom.group", "cgroup.kill"}}).Missing(); !slices.Equal(got, []string{"memory.peak"}) {
		t.Errorf("an older v2 lacks %v", got)
	}
	for release, want := range map[string]bool{"5.14.0": true, "5.13.19-x": false, "6.1.0-18-amd64": true, "4.19.0": false, "": false, "x": false} {
		if got := atLeast(release, 5, 14); got != want {
			t.Errorf("%q from 5.14 on: %v", release, got)
		}
	}
}

func TestPath(t *testing.T) {
	v1 := Tree{Mode: V1, Controllers: map[string]Controller{"memory": {Dir: "/m/7"}, "cpu": {Dir: "/c"}, "pids": {Why: "x"}}}
	if diff := cmp.Diff(map[string]string{"memory": "/m/7/muster/a/b", "cpu": "/c/muster/a/b"}, v1.Path("a", "b")); diff != "" {
		t.Errorf("v1 -want +got:\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"": "/s/u/muster/a/b"}, Tree{Mode: V2, Dir: "/s/u"}.Path("a", "b")); diff != "" {
		t.Errorf("v2 -want +got:\n%s", diff)
	}
}

func TestHandedOver(t *testing.T) {
	for _, c := range []struct {
		name              string
		user, here, above uint32
		want              bool
	}{
		{"Delegate= with User=", 1000, 1000, 0, true},
		{"below a user's own service manager", 1000, 1000, 1000, false},
		{"a session of the system", 1000, 0, 0, false},
		{"root owns everything", 0, 0, 0, false},
	} {
		if got := handedOver(c.user, c.here, c.above); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

func TestNotMounts(t *testing.T) {
	if got := unescape(`/a\040b\011c\134d\8`); got != "/a b\tc\\d\\8" {
		t.Errorf("unescaped %q", got)
	}
}
