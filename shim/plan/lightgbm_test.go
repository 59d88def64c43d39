package plan_test

import (
	"strings"
	"testing"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/shim/plan"
)

// A machine of LightGBM's that goes by its name is warned of; one by number, or one that is not known yet, is not.
func TestLightGBMWantsNumbers(t *testing.T) {
	app := hboxApp()
	for framework, warned := range map[string]bool{"lightgbm": true, "none": false} {
		app.Settings.Framework = framework
		for host, bad := range map[string]bool{"": false, "10.0.0.1": false, "node1.example": true, "fd00::1": true} {
			p, problems := plan.Build(app, plan.Request{Component: "worker", Digest: "-", Allocation: plan.Allocation{Host: host}})
			if len(problems) > 0 {
				t.Fatal(problems)
			}
			if got := strings.Contains(appdef.Problems(p.Warnings).Error(), "want an IPv4 address: --host"); got != (bad && warned) {
				t.Errorf("%s at %q: warned %t: %v", framework, host, got, p.Warnings)
			}
		}
	}
}
