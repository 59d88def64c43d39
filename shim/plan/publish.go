package plan

import (
	"slices"
	"strings"

	"github.com/muster-agent/muster/appdef"
)

// Published is what an instance publishes for the whole app besides its own exports, as Slider's application master did
// with a MASTER's GET_CONFIG.
type Published struct {
	// Configs are dictionary → key → value, of a component that publishes its configuration.
	Configs map[string]map[string]string
	// Exports are the component's appExports, by `<group>.<name>`: one value for the whole app.
	Exports map[string]string
}

// Around is what an instance publishes beside values of its own.
type Around struct {
	Hosts map[string][]string // of each component's instances, in index order
	Ports portFinder          // of the other components
	// Work and Log are the instance's folders; empty: not known.
	Work, Log string
}

// PublishedBy is what the instance of req publishes for the whole app. req.Allocation contains the host and the
// published ports. Every agent of the app computes the same answer.
func PublishedBy(app appdef.App, req Request, around Around) Published {
	out := Published{Configs: map[string]map[string]string{}, Exports: map[string]string{}}
	c := app.Component(req.Component)
	if c == nil {
		return out
	}
	scope := req.scope(&app, portTexts(&app, req.Component, req.Index))
	scope.Host, scope.Hosts = req.Allocation.Host, around.Hosts
	fill := strings.NewReplacer(append(portTokens(portsOf(&app, req.Component, req.Index), req.Allocation.Ports),
		slices.Concat(peerTokens(peersOf(&app, req.Component), around.Ports), req.folderTokens(around))...)...).Replace
	if publishesConfig(&app, c) {
		dicts, _ := scope.Dictionaries()
		for dict, values := range dicts {
			if exportsConfig(&app, dict) {
				out.Configs[dict] = eachValue(values, fill)
			}
		}
	}
	scope.Hosts = firsts(around.Hosts)
	for _, ref := range c.AppExports {
		if export, ok := app.Export(ref); ok && !ofOtherSide(&app, c, req.Index, export.Value) {
			value, _ := scope.Expand(export.Value)
			out.Exports[ref.Group+"."+ref.Name] = fill(value)
		}
	}
	return out
}

// publishesConfig: a component with publishConfig. If no MASTER has it, each of them publishes its configuration
// (AgentProviderService.canAnyMasterPublishConfig).
func publishesConfig(app *appdef.App, c *appdef.Component) bool {
	return c.PublishConfig || c.Category == "MASTER" &&
		!slices.ContainsFunc(app.Components, func(other appdef.Component) bool {
			return other.PublishConfig && other.Category == "MASTER"
		})
}

// exportsConfig tells that the definition publishes a dictionary: without a list of them, each.
func exportsConfig(app *appdef.App, dict string) bool {
	return len(app.ExportedConfigs) == 0 || slices.Contains(app.ExportedConfigs, dict)
}

// folderTokens are the instance's folders in the place of their tokens.
func (r Request) folderTokens(around Around) []string {
	var pairs []string
	for token, folder := range map[string]string{r.root(): around.Work, r.log(): around.Log} {
		if folder != "" {
			pairs = append(pairs, token, folder)
		}
	}
	return pairs
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
