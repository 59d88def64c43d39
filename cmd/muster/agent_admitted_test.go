package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/muster-agent/muster/shim/hadoop"
	"github.com/muster-agent/muster/shim/plan"
	"github.com/muster-agent/muster/shim/policy"
	"github.com/muster-agent/muster/tests/need"
)

// What a definition may name of the host does not depend on links that somebody has laid.
func TestAdmitted(t *testing.T) {
	if os.Geteuid() != 0 {
		need.Skip(t, "only an agent that is root could do more than its process")
	}
	work, outside := t.TempDir(), t.TempDir()
	if err := os.MkdirAll(filepath.Join(work, "store"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(work, "store", "link")); err != nil {
		t.Fatal(err)
	}
	image, readOnly, host := plan.Plan{Root: plan.Root{Kind: plan.RootImage}}, plan.Plan{Root: plan.Root{Kind: plan.RootReadOnly}}, plan.Plan{Root: plan.Root{Kind: plan.RootHost}}
	for _, tt := range []struct {
		name  string
		plan  plan.Plan
		path  string
		write bool
		agent *agent
		ok    bool
	}{
		{"its own store", image, filepath.Join(work, "store", "x"), true, &agent{}, true},
		{"a link out of it", image, filepath.Join(work, "store", "link", "x"), true, &agent{}, false},
		{"muster's own", host, filepath.Join(work, "package", "x"), true, &agent{}, false},
		{"muster's own mark", host, filepath.Join(work, ".outputs-worker-0"), false, &agent{}, false},
		{"the work folder", host, work, false, &agent{}, false},
		{"the host, from an image", image, "/etc/shadow", false, &agent{}, false},
		{"the host, which it could read", readOnly, "/etc/shadow", false, &agent{}, true},
		{"the host, which it could not write", readOnly, "/etc/cron.d", true, &agent{}, false},
		{"the host's root", host, "/etc/cron.d", true, &agent{}, true},
		{"as a user", image, outside, true, &agent{user: &plan.UserFacts{UID: 65534}}, true},
		{"in the named filesystem", image, filepath.Join(outside, "x"), true, &agent{filesystem: hadoop.DefaultFS{URI: "file:" + outside, Origin: "--default-fs"}}, true},
		{"beside the named filesystem", image, outside + "x", true, &agent{filesystem: hadoop.DefaultFS{URI: "file:" + outside, Origin: "--default-fs"}}, false},
		{"what the operator mounts", image, filepath.Join(outside, "x"), true, &agent{policy: policy.Policy{Mounts: []policy.Mount{{Path: outside}}}}, true},
		{"what the operator mounts to be read", image, filepath.Join(outside, "x"), true, &agent{policy: policy.Policy{Mounts: []policy.Mount{{Path: outside, ReadOnly: true}}}}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := &agent{workDir: work, user: tt.agent.user, filesystem: tt.agent.filesystem, policy: tt.agent.policy}
			if _, err := a.admitted(tt.plan, tt.path, tt.write); (err == nil) != tt.ok {
				t.Errorf("got %v, want it admitted: %t", err, tt.ok)
			}
		})
	}
}
