package prepare

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/fault"
	"github.com/muster-agent/muster/shim/plan"
	"github.com/muster-agent/muster/shim/policy"
	"github.com/muster-agent/muster/shim/sandbox/container"
	"github.com/muster-agent/muster/shim/status"
)

// A definition's checkpoint folder is no way to a folder of the host, nor to those that the agents keep.
func TestCheckpointFolderStaysInTheWorkFolder(t *testing.T) {
	const (
		fine = iota
		notPermittedHere
		wrong
	)
	state := status.Dir(t.TempDir())
	c := New(Config{
		AppID: "d1", WorkDir: "/work", LogDir: "/work/log", Stores: realStores{},
		Socket: func(in registry.Instance) string { return state.Socket("d1", in.String()) },
		Policy: policy.Policy{
			Mounts: []policy.Mount{{Path: "/data", To: "/data"}, {Path: "/archive", To: "/archive", ReadOnly: true}, {Path: "/else", To: "/where"}},
			Roots:  []policy.Root{{Path: "/models"}},
		},
	})
	in := registry.Instance{Component: "w", Index: 0}
	beyond := fine // an ordinary user's agent has the process's own rights
	if os.Geteuid() == 0 {
		beyond = notPermittedHere
	}
	for dir, tt := range map[string]struct {
		container, host int
		mounted         string // "": nothing for it
	}{
		"/work/checkpoint":          {fine, fine, "/work/checkpoint"},
		"/work/checkpoint/a/b":      {fine, fine, "/work/checkpoint"},
		"/work/checkpoint/../saves": {fine, fine, "/work/saves"},
		"/work/w-0/saves":           {fine, fine, ""},
		"hdfs://nn/saves":           {fine, fine, ""},
		"/data/saves":               {fine, fine, ""},
		"/archive/saves":            {notPermittedHere, beyond, ""},
		"/models/saves":             {notPermittedHere, fine, ""},
		"/where/saves":              {notPermittedHere, beyond, ""},
		"/etc":                      {notPermittedHere, beyond, ""},
		"/work/../etc":              {notPermittedHere, beyond, ""},
		"/data/../etc":              {notPermittedHere, beyond, ""},
		"/workshop":                 {notPermittedHere, beyond, ""},
		"/work":                     {wrong, wrong, ""},
		"/work/checkpoint/..":       {wrong, wrong, ""},
		"/work/package/x":           {wrong, wrong, ""},
		"/work/root/w-1":            {wrong, wrong, ""},
		"/work/log":                 {wrong, wrong, ""},
		"/work/.stage-w-1":          {wrong, wrong, ""},
	} {
		for kind, want := range map[string]int{plan.RootReadOnly: tt.container, plan.RootImage: tt.container, plan.RootHost: tt.host} {
			var p plan.Plan
			p.Root.Kind, p.Checkpoint.Dir, p.Process.Folder = kind, dir, "/work/w-0"
			err := c.Admission(p).Checkpoint(dir)
			got := fine
			if fault.Is(err, registry.ClassNotPermitted) {
				got = notPermittedHere
			} else if fault.Is(err, registry.ClassDefinition) {
				got = wrong
			}
			if got != want {
				t.Errorf("%s, root %s: got %v, want %d", dir, kind, err, want)
			}
			if err != nil || kind == plan.RootHost {
				continue
			}
			others := []string{"/data", "/archive", "/else", "/work/package", "/work/w-0", "/work/log/w-0", state.Socket("d1", "w-0")}
			var more []string
			for _, m := range c.mounts(p, in) {
				if !slices.Contains(others, m.From) {
					more = append(more, m.From)
				}
				inertMount(t, m)
			}
			if tt.mounted == "" && more != nil || tt.mounted != "" && !slices.Equal(more, []string{tt.mounted}) {
				t.Errorf("%s: mounted are also %v, want %q", dir, more, tt.mounted)
			}
		}
	}
}

// What lies in a folder of the host is nothing in a container but files.
func inertMount(t *testing.T, m container.Mount) {
	t.Helper()
	for _, option := range []string{"nosuid", "nodev"} {
		if !slices.Contains(m.Options, option) || filepath.Clean(m.From) != m.From {
			t.Errorf("mount %+v: want it clean, and %s", m, option)
		}
	}
}
