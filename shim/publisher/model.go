package publisher

import (
	"maps"
	"strconv"

	"github.com/muster-agent/muster/appdef"
)

// schema is the only one that Slider's documents have.
const schema = "http://example.org/specification/v2.0.0"

// confTree is the shape of appConfig and resources.
type confTree struct {
	Schema      string                       `json:"schema"`
	Metadata    map[string]any               `json:"metadata"`
	Global      map[string]string            `json:"global"`
	Credentials map[string][]string          `json:"credentials"`
	Components  map[string]map[string]string `json:"components"`
}

type aggregate struct {
	Name      string   `json:"name"`
	Resources confTree `json:"resources"`
	Internal  confTree `json:"internal"`
	AppConf   confTree `json:"appConf"`
}

func newTree(global map[string]string) confTree {
	t := confTree{
		Schema: schema, Metadata: map[string]any{}, Global: map[string]string{}, Credentials: map[string][]string{},
		Components: map[string]map[string]string{},
	}
	maps.Copy(t.Global, global)
	return t
}

// appConf is the document as it was given; resolved, a component has the globals that are not its own.
func (v View) appConf(resolved bool) confTree {
	t := newTree(v.AppConf)
	for _, c := range v.Components {
		t.Components[c.Name] = merged(c.Config, v.AppConf, resolved)
	}
	return t
}

// resources is the document as it was given, with the counts wanted now; resolved, with the globals and what Slider
// takes where nothing is said.
func (v View) resources(resolved bool) confTree {
	t := newTree(v.Resources)
	for _, c := range v.Components {
		own := merged(c.Resources, v.Resources, resolved)
		own["yarn.component.instances"] = strconv.Itoa(c.Instances) // a flex is written into Slider's document
		if resolved {
			own["yarn.role.priority"] = strconv.Itoa(c.Priority)
			underlay(own, map[string]string{
				"yarn.memory": strconv.Itoa(appdef.DefaultMemoryMB), "yarn.vcores": strconv.Itoa(appdef.DefaultVCores),
			})
		}
		t.Components[c.Name] = own
	}
	return t
}

// liveResources adds what there is to what is wanted. A script reads its memory and how many to wait for here.
func (v View) liveResources() confTree {
	t := v.resources(true)
	for _, c := range v.Components {
		info := v.component(c)
		for key, n := range map[string]int{
			"requesting": info.Requested, "actual": info.Actual, "releasing": info.Releasing,
			"failed": info.Failed, "completed": info.Completed, "started": info.Started,
		} {
			t.Components[c.Name]["yarn.component.instances."+key] = strconv.Itoa(n)
		}
	}
	return t
}

func merged(own, global map[string]string, resolved bool) map[string]string {
	out := map[string]string{}
	maps.Copy(out, own)
	if resolved {
		underlay(out, global)
	}
	return out
}

// underlay sets what is not there.
func underlay(out, below map[string]string) {
	for key, value := range below {
		if _, ok := out[key]; !ok {
			out[key] = value
		}
	}
}

func getLiveResources(q question) (answer, error) { return inJSON(q.view.liveResources()) }

func getModel(q question) (answer, error) {
	resolved, err := q.resolved()
	if err != nil {
		return answer{}, err
	}
	return inJSON(aggregate{
		Name: q.view.App.Name, Resources: q.view.resources(resolved), Internal: newTree(nil),
		AppConf: q.view.appConf(resolved),
	})
}

func getModelTree(q question) (answer, error) {
	resolved, err := q.resolved()
	if err != nil {
		return answer{}, err
	}
	switch q.names["tree"] {
	case "appconf":
		return inJSON(q.view.appConf(resolved))
	case "resources":
		return inJSON(q.view.resources(resolved))
	}
	return answer{}, notFound("no document "+q.names["tree"], "appconf or resources")
}

func (q question) resolved() (bool, error) {
	switch q.names["model"] {
	case "desired":
		return false, nil
	case "resolved":
		return true, nil
	}
	return false, notFound("no model "+q.names["model"], "desired or resolved")
}
