package plan_test

import (
	"slices"
	"testing"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/shim/plan"
)

// TestLogin: an ssh server has a port of its own behind all others, which is no port of the process; that of PAI's label
// ssh where there is one.
func TestLogin(t *testing.T) {
	const other = "${w.ALLOCATED_PORT}{PER_CONTAINER}"
	for name, tt := range map[string]struct {
		dialect string
		config  map[string]string
		ssh     string
		ports   []string
		login   string
		first   string // MUSTER_PORT
	}{
		"none":        {"slider", nil, "", nil, "", ""},
		"alone":       {"slider", nil, "true", []string{"ssh"}, "ssh", ""},
		"with others": {"slider", map[string]string{"site.global.p": other}, "true", []string{"global.p", "ssh"}, "ssh", "{{port.global.p}}"},
		"pai's": {
			"pai",
			map[string]string{"site.port.http": other, "site.port.ssh": other},
			"",
			[]string{"port.http", "port.ssh"},
			"port.ssh", "{{port.port.http}}",
		},
		"pai's, not wanted": {
			"pai",
			map[string]string{"site.port.http": other, "site.port.ssh": other},
			"false",
			[]string{"port.http", "port.ssh"},
			"", "{{port.port.http}}",
		},
		"hbox's":    {"vpc", nil, "", []string{"ssh"}, "ssh with passwords", ""},
		"called so": {"slider", map[string]string{"site.port.ssh": other}, "true", []string{"port.ssh", "ssh"}, "ssh", "{{port.port.ssh}}"},
	} {
		t.Run(name, func(t *testing.T) {
			c := appdef.Component{Name: "w", Instances: 1, Config: tt.config}
			c.Settings.Role, c.Settings.Command, c.Settings.SSH = appdef.RoleWorker, "true", tt.ssh
			app := appdef.App{Name: "a", Dialect: tt.dialect, Components: []appdef.Component{c}}
			if tt.dialect == "vpc" {
				app.Dialect, app.Settings.HBox.Type = "hbox", "VPC"
			}
			p, problems := plan.Build(app, plan.Request{Component: "w"})
			if bad := problems.Errors(); len(bad) > 0 {
				t.Fatal(bad)
			}
			var ports []string
			for _, port := range p.Ports {
				ports = append(ports, port.Name)
			}
			login := ""
			if p.Login != nil {
				login = p.Login.Port
				if p.Login.Password {
					login += " with passwords"
				}
			}
			if !slices.Equal(ports, tt.ports) || login != tt.login || p.Process.Env["MUSTER_PORT"] != tt.first {
				t.Errorf("got %v, %q, %q", ports, login, p.Process.Env["MUSTER_PORT"])
			}
		})
	}
}
