package sandbox

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/muster-agent/muster/shim/sandbox/cgroup"
	"github.com/muster-agent/muster/shim/sandbox/guard"
	"github.com/muster-agent/muster/tests/need"
)

func TestContainerNamesWhatItCannotHold(t *testing.T) {
	at := cgroup.Controller{Dir: "/sys/fs/cgroup/unit", Mount: "/sys/fs/cgroup"}
	refused := cgroup.Controller{Why: "not ours to write"}
	gpus := ""
	if os.Geteuid() == 0 { // an ordinary user's user namespace has no other devices
		gpus = " gpus"
	}
	for _, c := range []struct {
		name string
		tree cgroup.Tree
		want string
		path string
	}{
		{"no cgroups", cgroup.Tree{Mode: cgroup.None, NoDevices: "none"}, "cpu_hard" + gpus + " high_mb pids swap_mb vcores", ""},
		{"all of v2", cgroup.Tree{
			Mode: cgroup.V2, Dir: at.Dir, Swap: true, Controllers: map[string]cgroup.Controller{"memory": at, "cpu": at, "pids": at},
			Features: []string{"memory.high"},
		}, "", "/unit/muster/a/w-0"},
		{"v2 without cpu and swap", cgroup.Tree{
			Mode: cgroup.V2, Dir: at.Dir, Controllers: map[string]cgroup.Controller{"memory": at, "cpu": refused, "pids": at},
		}, "cpu_hard high_mb swap_mb vcores", "/unit/muster/a/w-0"},
		{"v2 elsewhere", cgroup.Tree{
			Mode: cgroup.V2, Dir: "/cg/unit", Swap: true, Controllers: map[string]cgroup.Controller{
				"memory": {Dir: "/cg/unit", Mount: "/cg"}, "cpu": {Mount: "/cg"}, "pids": {Mount: "/cg"},
			},
		}, "high_mb", ""},
		{"v1", cgroup.Tree{Mode: cgroup.Hybrid, Swap: true, Controllers: map[string]cgroup.Controller{
			"memory": {}, "cpu": {}, "pids": {}, "devices": {}, "freezer": {}, "cpuacct": {},
		}}, "high_mb", "muster/a/w-0"},
		// libcontainer joins all controllers of v1 or none.
		{"v1 in part", cgroup.Tree{Mode: cgroup.V1, Swap: true, NoDevices: refused.Why, Controllers: map[string]cgroup.Controller{
			"memory": {}, "cpu": refused, "pids": {}, "devices": refused,
		}}, "cpu_hard" + gpus + " high_mb vcores", ""},
	} {
		e := Container{Tree: c.tree}
		if got := strings.Join(slices.Sorted(maps.Keys(e.Cannot())), " "); got != c.want {
			t.Errorf("%s: %v, want %s", c.name, got, c.want)
		}
		if got := e.path(Confinement{App: "a", Instance: "w-0"}); got != c.path {
			t.Errorf("%s: cgroup at %q, want %q", c.name, got, c.path)
		}
	}
}

// A limit that no cgroup holds here is no error: what a container can have is made.
func TestContainerInPartOfTheHierarchies(t *testing.T) {
	host := tree(t)
	if host.Mode == cgroup.V2 || os.Geteuid() != 0 {
		return // v2 has one hierarchy
	}
	host.Controllers["pids"] = cgroup.Controller{Why: "not for this test"}
	o := containerOptions(t, func(c *Confinement) { c.Limits = cgroup.Limits{Memory: 64 << 20, Pids: 9} })
	g, err := Container{Tree: host}.StartGuard(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	left := g.Remains()
	own := readFile(t, fmt.Sprintf("/proc/%d/cgroup", g.PID()))
	for _, name := range []string{":memory:", ":devices:"} {
		_, path, _ := strings.Cut(own, name)
		if path, _, _ = strings.Cut(path, "\n"); !strings.HasSuffix(path, "/muster/"+o.Confine.App+"/worker-0") {
			t.Errorf("the guard is in %q of %s", path, name)
		}
	}
	// What libcontainer has not joined, nobody else would clear after a killed agent.
	for _, controller := range []string{"memory", "devices"} {
		want := filepath.Join(host.Controllers[controller].Dir, "muster", o.Confine.App, "worker-0")
		if !slices.Contains(left.Cgroups, want) {
			t.Errorf("left are %q, without %s", left.Cgroups, want)
		}
	}
	if err := g.Close(); err != nil {
		t.Error(err)
	}
	wantNothingOf(t, o.Confine.Dir, left)
}

// The JVM takes the first cgroups that it finds for its own, and those of the host would have it fail.
func TestSysfsOfAContainerIsItsOwn(t *testing.T) {
	need.Root(t) // else it is the host's sysfs
	g := containerGuard(t, nil)
	seen := map[string]bool{}
	for line := range strings.Lines(readFile(t, fmt.Sprintf("/proc/%d/mountinfo", g.PID()))) {
		at := strings.Fields(line)[4]
		if strings.HasPrefix(at, "/sys/") && seen[at] {
			t.Errorf("two filesystems are mounted at %s", at)
		}
		seen[at] = true
	}
	if !seen["/sys/fs/cgroup"] {
		t.Errorf("no cgroups among the mounts %v", seen)
	}
}

func TestContainerUsers(t *testing.T) {
	own := uint32(os.Geteuid())
	for _, c := range []struct {
		name    string
		user    *guard.User
		refused bool // for an ordinary user
	}{
		{"none", nil, false}, {"root", &guard.User{}, false}, {"own", &guard.User{UID: own, GID: own}, false}, {"other", &guard.User{UID: 4711}, true},
	} {
		o := Options{Confine: Confinement{User: c.user}}
		err := Container{}.options(&o)
		switch {
		case own == 0 && (err != nil || o.Confine.User != c.user):
			t.Errorf("%s: %v, %+v", c.name, err, o.Confine.User)
		case own != 0 && (errors.Is(err, errUser) != c.refused || !c.refused && o.Confine.User != nil):
			t.Errorf("%s: %v, %+v", c.name, err, o.Confine.User)
		}
		if !c.refused && (*o.Caps != DefaultCaps || !o.NoNewPrivs) {
			t.Errorf("%s: capabilities %x, no new privileges %v", c.name, *o.Caps, o.NoNewPrivs)
		}
	}
	few := Caps(1)
	o := Options{Caps: &few}
	if err := (Container{}).options(&o); err != nil || *o.Caps != 1 {
		t.Errorf("other capabilities: %v, %x", err, *o.Caps)
	}
}
