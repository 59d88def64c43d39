package plan

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/muster-agent/muster/appdef"
)

// A folder of checkpoints in a store is a local one that muster copies, unless the process reaches the store itself.
func TestCheckpointPlaces(t *testing.T) {
	const url = "hdfs://n:9000/user/me/run"
	for _, c := range []struct {
		name      string
		framework string
		set       appdef.Checkpoint
		site      string // user.checkpoint.dir
		libhdfs   bool
		want      Checkpoint
		warns     string
	}{
		{name: "nothing", want: Checkpoint{Dir: "${WORK}/checkpoint"}},
		{name: "a folder", set: appdef.Checkpoint{Dir: "/mnt/x"}, want: Checkpoint{Dir: "/mnt/x"}},
		{name: "a folder as a URL", set: appdef.Checkpoint{Dir: "file:///mnt/x"}, want: Checkpoint{Dir: "/mnt/x"}},
		{name: "a store", framework: "pytorch", set: appdef.Checkpoint{Dir: url, Keep: 3}, want: Checkpoint{Dir: "${WORK}/checkpoint", Sync: url, Keep: 3}},
		{name: "a store, by the process", framework: "pytorch", set: appdef.Checkpoint{Dir: url, Reach: "process"}, want: Checkpoint{Dir: url}},
		{name: "a store that only the process knows", framework: "pytorch", set: appdef.Checkpoint{Dir: "s3://b/x"}, want: Checkpoint{Dir: "s3://b/x"}},
		{name: "TensorFlow without libhdfs", framework: "tensorflow", site: url, want: Checkpoint{Dir: "${WORK}/checkpoint", Sync: url}},
		{name: "TensorFlow with it", framework: "tensorflow", site: url, libhdfs: true, want: Checkpoint{Dir: url}},
		{name: "TensorFlow with it, by muster", framework: "tensorflow", site: url, libhdfs: true, set: appdef.Checkpoint{Reach: "muster"}, want: Checkpoint{Dir: "${WORK}/checkpoint", Sync: url}},
		{name: "another with libhdfs", framework: "mxnet", set: appdef.Checkpoint{Dir: url}, libhdfs: true, want: Checkpoint{Dir: "${WORK}/checkpoint", Sync: url}},
		{name: "a folder and a store", set: appdef.Checkpoint{Dir: "/mnt/x", Sync: url}, want: Checkpoint{Dir: "/mnt/x", Sync: url}},
		{name: "a store of this machine", set: appdef.Checkpoint{Sync: "/mnt/keep"}, want: Checkpoint{Dir: "${WORK}/checkpoint", Sync: "/mnt/keep"}},
		{name: "two stores", set: appdef.Checkpoint{Dir: url, Sync: "/mnt/keep"}, want: Checkpoint{Dir: "${WORK}/checkpoint", Sync: "/mnt/keep"}},
		{name: "to keep of nothing", set: appdef.Checkpoint{Keep: 2}, want: Checkpoint{Dir: "${WORK}/checkpoint", Keep: 2}, warns: "muster.checkpoint.sync"},
		{name: "twice in a store", set: appdef.Checkpoint{Dir: url, Reach: "process", Sync: "/mnt/keep"}, want: Checkpoint{Dir: url}, warns: "from where nothing is copied"},
	} {
		t.Run(c.name, func(t *testing.T) {
			app := appdef.App{Settings: appdef.AppSettings{Framework: c.framework}}
			app.Components = []appdef.Component{{Name: "worker", Instances: 1, Config: map[string]string{}, Settings: appdef.ComponentSettings{Role: appdef.RoleWorker, Command: "true", Checkpoint: c.set}}}
			if c.site != "" {
				app.Components[0].Config["site.global.user.checkpoint.dir"] = c.site
			}
			p, problems := Build(app, Request{Component: "worker", Digest: "-", HostFacts: HostFacts{Hadoop: &HadoopFacts{Conf: "/etc/hadoop", Libhdfs: c.libhdfs}}})
			if diff := cmp.Diff(c.want, p.Checkpoint); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			warned := slices.ContainsFunc(p.Warnings, func(p appdef.Problem) bool {
				return c.warns != "" && strings.Contains(p.Want+p.Hint, c.warns)
			})
			if warned != (c.warns != "") {
				t.Errorf("warnings: %v, %v, want one with %q", p.Warnings, problems.Errors(), c.warns)
			}
		})
	}
}
