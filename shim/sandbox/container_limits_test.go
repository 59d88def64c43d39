package sandbox

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/muster-agent/muster/shim/plan"
	"github.com/muster-agent/muster/shim/sandbox/cgroup"
	"github.com/muster-agent/muster/shim/sandbox/guard"
)

func TestContainerNamesWhatItCannotHold(t *testing.T) {
	all := plan.Limits{MemoryMB: 1, SwapMB: 1, VCores: 1, CPUHard: true, Pids: 1, ShmMB: 1, GPUs: 1}
	at := cgroup.Controller{Dir: "/sys/fs/cgroup/unit", Mount: "/sys/fs/cgroup"}
	refused := cgroup.Controller{Why: "not ours to write"}
	gpus := ""
	if os.Geteuid() == 0 { // an ordinary user's user namespace has no other devices
		gpus = " gpus"
	}
	for _, c := range []struct {
		name string
		tree cgroup.Tree
		ask  plan.Limits
		want string
		path string
	}{
		{"nothing asked", cgroup.Tree{}, plan.Limits{}, "", ""},
		{"no cgroups", cgroup.Tree{Mode: cgroup.None, NoDevices: "none"}, all, "swap_mb vcores cpu_hard pids" + gpus, ""},
		{"all of v2", cgroup.Tree{
			Mode: cgroup.V2, Dir: at.Dir, Swap: true, Controllers: map[string]cgroup.Controller{"memory": at, "cpu": at, "pids": at},
		}, all, "", "/unit/muster/a/w-0"},
		{"v2 without cpu and swap", cgroup.Tree{
			Mode: cgroup.V2, Dir: at.Dir, Controllers: map[string]cgroup.Controller{"memory": at, "cpu": refused, "pids": at},
		}, all, "swap_mb vcores cpu_hard", "/unit/muster/a/w-0"},
		{"v2 elsewhere", cgroup.Tree{
			Mode: cgroup.V2, Dir: "/cg/unit", Swap: true, Controllers: map[string]cgroup.Controller{
				"memory": {Dir: "/cg/unit", Mount: "/cg"}, "cpu": {Mount: "/cg"}, "pids": {Mount: "/cg"},
			},
		}, all, "swap_mb vcores cpu_hard pids", ""},
		{"v1", cgroup.Tree{Mode: cgroup.Hybrid, Swap: true, Controllers: map[string]cgroup.Controller{
			"memory": {}, "cpu": {}, "pids": {}, "devices": {}, "freezer": {}, "cpuacct": {},
		}}, all, "", "muster/a/w-0"},
		// libcontainer joins all controllers of v1 or none.
		{"v1 in part", cgroup.Tree{Mode: cgroup.V1, Swap: true, Controllers: map[string]cgroup.Controller{
			"memory": {}, "cpu": {}, "pids": {}, "devices": refused,
		}}, all, "swap_mb vcores cpu_hard pids", ""},
	} {
		e := Container{Tree: c.tree}
		var got []string
		for _, u := range e.Unenforced(c.ask) {
			if u.Why == "" {
				t.Errorf("%s: %s without a reason", c.name, u.Limit)
			}
			got = append(got, u.Limit)
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: %v, want %s", c.name, got, c.want)
		}
		if got := e.path(Confinement{App: "a", Instance: "w-0"}); got != c.path {
			t.Errorf("%s: cgroup at %q, want %q", c.name, got, c.path)
		}
	}
}

func TestContainerHoldsNoMoreThanTheKernelTakes(t *testing.T) {
	asked := cgroup.Limits{Memory: 1 << 30, High: 1 << 29, Swap: 1, Group: true, CPU: 2, Hard: true, Pids: 9}
	refused := cgroup.Controller{Why: "not delegated"}
	e := Container{Tree: cgroup.Tree{Mode: cgroup.V2, Controllers: map[string]cgroup.Controller{"memory": refused, "cpu": {}, "pids": refused}}}
	if got := e.held(asked); got.Memory+got.High+got.Swap+got.Pids != 0 || got.Group || got.CPU != 2 || !got.Hard {
		t.Errorf("got %+v", got)
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
		err := Container{}.settle(&o)
		switch {
		case own == 0 && (err != nil || o.Confine.User != c.user):
			t.Errorf("%s: %v, %+v", c.name, err, o.Confine.User)
		case own != 0 && (errors.Is(err, ErrUser) != c.refused || !c.refused && o.Confine.User != nil):
			t.Errorf("%s: %v, %+v", c.name, err, o.Confine.User)
		}
		if !c.refused && (*o.Caps != DefaultCaps || !o.NoNewPrivs) {
			t.Errorf("%s: capabilities %x, no new privileges %v", c.name, *o.Caps, o.NoNewPrivs)
		}
	}
	few := Caps(1)
	o := Options{Caps: &few}
	if err := (Container{}).settle(&o); err != nil || *o.Caps != 1 {
		t.Errorf("fewer capabilities: %v, %x", err, *o.Caps)
	}
}
