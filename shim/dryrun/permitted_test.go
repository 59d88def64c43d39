package dryrun

import (
	"strings"
	"testing"

	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/openapp"
	"github.com/muster-agent/muster/shim/policy"
	"github.com/muster-agent/muster/shim/prepare"
	"github.com/muster-agent/muster/tests/need"
)

// What a root agent would be refused by its policy its plan is refused, and nothing else.
func TestRefusedAsAnAgent(t *testing.T) {
	if !prepare.RootOfHost() {
		need.Skip(t, "judges as an agent that is root of the host")
	}
	yes, no := true, false
	admits := policy.Policy{Version: 1}
	admits.Users.Names = []string{"nobody"}
	for name, tt := range map[string]struct {
		rules policy.Policy
		set   string
		want  string // in the error; "": it is planned
		code  int
	}{
		"ids of its own":      {want: ""},
		"root inside":         {set: "muster.user=root"},
		"the host's root":     {policy.Policy{Userns: "host"}, "muster.user=root", "worker: the process would be root of this host", 77},
		"and no user":         {policy.Policy{Userns: "host"}, "", "worker: the process would be root of this host", 77},
		"refused by name":     {policy.Policy{Userns: "host", RefuseRoot: &yes}, "", "worker: the process would be root", 77},
		"permitted by name":   {policy.Policy{Userns: "host", RefuseRoot: &no}, "", "", 0},
		"another user":        {policy.Policy{}, "muster.user=nobody", "does not let definitions run as uid 65534", 77},
		"another, by name":    {admits, "muster.user=nobody", "", 0},
		"nobody of this host": {policy.Policy{}, "muster.user=no-such-user", `user "no-such-user"`, 65},
		"a host's limit":      {policy.Policy{}, "muster.ulimit.sigpending=unlimited", "tells on the whole host", 77},
		"a checkpoint":        {policy.Policy{}, "muster.checkpoint.dir=/srv/elsewhere", "muster.checkpoint.dir: checkpoint folder /srv/elsewhere", 77},
		"an agent's variable": {policy.Policy{}, "muster.secret.KEY=env:HOME", "variable HOME belongs to the agent", 77},
		"one that it lists":   {policy.Policy{SecretEnv: []string{"HOME"}}, "muster.secret.KEY=env:HOME", "", 0},
		"root's keyring":      {policy.Policy{}, "muster.secret.KEY=keyring:k", "key k is root's", 77},
		"a file of the job's": {policy.Policy{}, "muster.secret.KEY=file:/etc/hostname", "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			choices := openapp.Choices{Set: []string{"global:muster.framework=none"}}
			if tt.set != "" {
				choices.Set = append(choices.Set, "global:"+tt.set)
			}
			app, err := choices.Load(t.Context(), "testdata/app", t.Output())
			if err != nil {
				t.Fatal(err)
			}
			defer app.Close()
			p, err := New(t.Context(), app, Options{Engine: "auto", Policy: tt.rules, WorkDir: t.TempDir(), AppID: "dry"})
			if err != nil {
				t.Fatal(err)
			}
			_, err = p.List(t.Context())
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) || exit.CodeOf(err) != tt.code {
				t.Errorf("got %v, exit code %d, want %q, %d", err, exit.CodeOf(err), tt.want, tt.code)
			}
		})
	}
}
