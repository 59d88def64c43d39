package slider_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/appdef/slider"
)

// 10,000 instances: of two components, and of 100 components with 100 instances and configuration
// of their own each. The budget of either is 0.5 s.
func BenchmarkLoad(b *testing.B) {
	b.Run("components=2", func(b *testing.B) {
		files := base(b, nil)
		for b.Loop() {
			a, found := slider.Load(files, slider.Options{Instances: []string{"ps=1000,worker=9000"}})
			if len(found) > 0 {
				b.Fatal(found)
			}
			appdef.Digest(a)
		}
	})
	b.Run("components=100", func(b *testing.B) {
		files := base(b, hundred())
		for b.Loop() {
			a, found := slider.Load(files, slider.Options{})
			if len(found) > 0 {
				b.Fatal(found)
			}
			appdef.Digest(a)
		}
	})
}

// hundred is an app of 100 components that refer to each other.
func hundred() map[string]string {
	var groups, components, config, own, resources []string
	for i := range 100 {
		c := fmt.Sprintf("w%d", i)
		groups = append(groups, fmt.Sprintf(`{"name": "%s", "exports": [{"name": "host_port", "value": "${%s_HOST}:${site.global.%s.port}"}]}`, c, c, c))
		components = append(components, fmt.Sprintf(`{"name": "%s", "compExports": "%s-host_port", "commandScript": {"script": "s.py"}}`, c, c))
		config = append(config, fmt.Sprintf(`"site.global.%s.port": "${%s.ALLOCATED_PORT}{PER_CONTAINER}", "site.global.%s.dir": "${AGENT_WORK_ROOT}/%s"`, c, c, c, c))
		own = append(own, fmt.Sprintf(`"%s": {"muster.command": "run --dir ${@//site/global/%s.dir} --port ${@//site/global/%s.port}", "muster.stop.grace": "1m"}`, c, c, c))
		resources = append(resources, fmt.Sprintf(`"%s": {"yarn.role.priority": %d, "yarn.component.instances": 100}`, c, i+1))
	}
	const schema = `"schema": "http://example.org/specification/v2.0.0"`
	return map[string]string{
		"metainfo.json":  `{"schemaVersion": "2.1", "application": {"name": "many", "exportGroups": [` + strings.Join(groups, ",\n") + `], "components": [` + strings.Join(components, ",\n") + `]}}`,
		"appConfig.json": `{` + schema + `, "global": {` + strings.Join(config, ",\n") + `}, "components": {` + strings.Join(own, ",\n") + `}}`,
		"resources.json": `{` + schema + `, "components": {` + strings.Join(resources, ",\n") + `}}`,
	}
}
