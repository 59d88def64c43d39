package gang

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"testing"
)

// component is one component of a test's app; its processes are puppets.
type component struct {
	name     string
	count    int
	port     bool              // it exports host:port
	settings map[string]string // beside the app's
}

// definition is a test's app.
type definition struct {
	components []component
	settings   map[string]string
}

// workers is an app of n workers with a port each, which come back in place.
func workers(n int, settings map[string]string) definition {
	return definition{[]component{{name: "worker", count: n, port: true}}, settings}
}

// training is an app of one parameter server and n workers.
func training(n int, settings map[string]string) definition {
	return definition{[]component{{name: "ps", count: 1, port: true}, {name: "worker", count: n, port: true}}, settings}
}

func (d definition) instances() []string {
	var all []string
	for _, c := range d.components {
		for i := range c.count {
			all = append(all, c.name+"-"+strconv.Itoa(i))
		}
	}
	return all
}

type object = map[string]any

// write lays the app package out as a folder.
func (d definition) write(t testing.TB, dir, stage string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	global := object{
		"muster.framework":            "none",
		"muster.command":              fmt.Sprintf("exec %q %s", self, puppetVerb),
		"muster.env." + stageVariable: stage,
		"muster.restart.backoff":      "0.05",
		"muster.checkpoint.pattern":   "ckpt-*",
		"muster.stop.grace":           "600",
	}
	for k, v := range d.settings {
		global[k] = v
	}
	components, resources := object{}, object{}
	var metainfo, groups []any
	for i, c := range d.components {
		resources[c.name] = object{"yarn.role.priority": strconv.Itoa(i + 1), "yarn.component.instances": strconv.Itoa(c.count), "yarn.memory": "64", "yarn.vcores": "1"}
		one := object{"name": c.name, "category": "SLAVE", "minInstanceCount": "0"}
		if c.port {
			global["site.global."+c.name+".port"] = "${" + c.name + ".ALLOCATED_PORT}{PER_CONTAINER}"
			one["compExports"] = c.name + "-address"
			groups = append(groups, object{"name": c.name, "exports": []any{object{
				"name": "address", "value": "${" + c.name + "_HOST}:${site.global." + c.name + ".port}",
			}}})
		}
		metainfo = append(metainfo, one)
		own := object{}
		for k, v := range c.settings {
			own[k] = v
		}
		components[c.name] = own
	}
	files := map[string]object{
		"metainfo.json": {"schemaVersion": "2.1", "application": object{
			"name": "puppets", "version": "1", "exportGroups": groups, "components": metainfo,
		}},
		"appConfig.default.json": {"schema": "http://example.org/specification/v2.0.0", "global": global, "components": components},
		"resources.default.json": {"schema": "http://example.org/specification/v2.0.0", "global": object{}, "components": resources},
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, value := range files {
		text, err := json.MarshalIndent(value, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// with is the settings with more of them.
func with(settings map[string]string, more ...string) map[string]string {
	all := maps.Clone(settings)
	if all == nil {
		all = map[string]string{}
	}
	for i := 0; i+1 < len(more); i += 2 {
		all[more[i]] = more[i+1]
	}
	return all
}
