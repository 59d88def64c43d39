package plan

import (
	"slices"
	"strings"

	"github.com/muster-agent/muster/appdef"
)

// Published is what an instance publishes for the whole app besides its own exports, as Slider's application master did
// with a MASTER's GET_CONFIG.
type Published struct {
	// Configs are dictionary → key → value, of a component with publishConfig.
	Configs map[string]map[string]string
	// Exports are the component's appExports, by `<group>.<name>`: one value for the whole app.
	Exports map[string]string
}

// PublishedBy is what the instance of req publishes for the whole app. req.Allocation contains the host and the
// published ports; hosts are those of each component's instances, in index order. Every agent of the app computes the
// same answer.
func PublishedBy(app appdef.App, req Request, hosts map[string][]string) Published {
	out := Published{Configs: map[string]map[string]string{}, Exports: map[string]string{}}
	c := app.Component(req.Component)
	if c == nil {
		return out
	}
	scope := req.scope(&app, portTexts(&app, req.Component, req.Index))
	scope.Host, scope.Hosts = req.Allocation.Host, firsts(hosts)
	fill := strings.NewReplacer(portTokens(portsOf(&app, req.Component, req.Index), req.Allocation.Ports)...).Replace
	if c.PublishConfig {
		dicts, _ := scope.Dictionaries()
		for dict, values := range dicts {
			if len(app.ExportedConfigs) == 0 || slices.Contains(app.ExportedConfigs, dict) {
				out.Configs[dict] = eachValue(values, fill)
			}
		}
	}
	for _, ref := range c.AppExports {
		if export, ok := app.Export(ref); ok && !ofOtherSide(&app, c, req.Index, export.Value) {
			value, _ := scope.Expand(export.Value)
			out.Exports[ref.Group+"."+ref.Name] = fill(value)
		}
	}
	return out
}

// firsts keeps the first host of each component: what an application's export means by `${COMP_HOST}`.
func firsts(hosts map[string][]string) map[string][]string {
	out := make(map[string][]string, len(hosts))
	for component, all := range hosts {
		if len(all) > 0 {
			out[component] = all[:1]
		}
	}
	return out
}
