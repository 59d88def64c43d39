package scripts_test

import (
	"maps"
	"os"
	"strings"
	"testing"
)

// What a package gets wrong is said before anything runs.
func TestValidate(t *testing.T) {
	t.Parallel()
	order := func(pairs ...string) object {
		var orders []object
		for i := 0; i < len(pairs); i += 2 {
			orders = append(orders, object{"command": pairs[i], "requires": pairs[i+1]})
		}
		return object{"commandOrders": orders}
	}
	three := []part{{name: "a", script: "    pass\n"}, {name: "b", script: "    pass\n"}, {name: "c", script: "    pass\n"}}
	for name, c := range map[string]struct {
		more   object
		remove string
		config settings
		want   string // on stderr; empty: it is sound
	}{
		"sound":                {more: order("a-START", "b-STARTED,c-INSTALLED", "b-START", "c-STARTED")},
		"a missing script":     {remove: "package/scripts/b.py", want: "metainfo.json#/application/components/1/commandScript/script: got no file package/scripts/b.py, want a script in the package; did you mean scripts/a.py?"},
		"a cycle":              {more: order("a-START", "b-STARTED", "b-START", "c-STARTED", "c-START", "a-STARTED"), want: "metainfo.json#/application/commandOrders/0/requires: got a-START requires b-STARTED requires c-STARTED requires a-STARTED, want an order without a cycle"},
		"who waits for itself": {more: order("a-START", "a-STARTED"), want: "metainfo.json#/application/commandOrders/0/requires: got a-START requires a-STARTED, want an order without a cycle"},
		"an unknown component": {more: order("a-START", "bb-STARTED"), want: "metainfo.json#/application/commandOrders/0/requires: got the unknown component \"bb\", want one of a, b, c"},
		"another command":      {more: order("a-STOP", "b-STARTED"), want: "metainfo.json#/application/commandOrders/0/command: got \"a-STOP\", want COMPONENT-START; only starts can be ordered"},
		"no range of ports":    {config: settings{"site.global.slider.allowed.ports": "web"}, want: "appConfig.json#/global/site.global.slider.allowed.ports: got \"web\", want ports and ranges from 1 to 65535, such as 9000,9010-9020"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config := settings{"site.global.port": "${a.ALLOCATED_PORT}"}
			maps.Copy(config, c.config)
			j := newSmall(t, nil, small{parts: three, more: c.more, config: config})
			if c.remove != "" {
				j.must(os.Remove(j.dir + "/" + c.remove))
			}
			out, said, code := j.verb("validate", j.dir)
			want := 0
			if c.want != "" {
				want = 65
			}
			if got := strings.TrimSpace(out + said); code != want || c.want != "" && !like(got, c.want) {
				t.Errorf("ended with %d:\n%s\nwant %d:\n%s", code, got, want, c.want)
			}
		})
	}
}
