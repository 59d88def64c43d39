package plan

import (
	"strconv"
	"strings"

	"github.com/muster-agent/muster/appdef"
)

// builder holds the state of one Build.
type builder struct {
	app       *appdef.App
	req       Request
	position  int // of the component in the App
	component *appdef.Component
	scope     appdef.Resolver
	ports     []Port
	verbatim  int  // of Process
	byName    bool // the process is addressed by its name in Consul
	problems  appdef.Problems
	warnings  appdef.Problems
}

// spot finds where something was written. It is called only when there is a problem to report.
type spot func() appdef.Place

func (b *builder) problem(where spot, got, want, hint string) {
	b.problems = append(b.problems, where().Problem(got, want, hint))
}

func (b *builder) warn(where spot, got, want, hint string) {
	b.warnings = append(b.warnings, where().Warning(got, want, hint))
}

// cannot reports a part of the plan that cannot run here: a problem for a start, else a warning.
func (b *builder) cannot(where spot, got, want, hint string) {
	if b.req.Starts {
		b.problem(where, got, want, hint)
		return
	}
	b.warn(where, got, want, hint+": it can be planned, but not run")
}

// at is a part of the component.
func (b *builder) at(parts ...string) spot {
	return func() appdef.Place {
		return placeOf(b.app, append([]string{"components", strconv.Itoa(b.position)}, parts...)...)
	}
}

// key is one value of appConfig or resources, in the component's section or the global one.
func (b *builder) key(name string) spot {
	return func() appdef.Place {
		if p, ok := keyPlace(b.app, b.position, name); ok {
			return p
		}
		return b.at()()
	}
}

// dictKey is one value of a dictionary, `<dict>.<key>`: in appConfig, or in the file of the package's defaults.
func (b *builder) dictKey(name string) spot {
	return func() appdef.Place {
		if _, ok := b.component.Config["site."+name]; ok {
			return b.key("site." + name)()
		}
		for dict := range b.app.Defaults {
			if key, ok := strings.CutPrefix(name, dict+"."); ok && b.app.Defaults[dict][key] != "" {
				at := placeOf(b.app, "defaults", dict)
				at.Pointer = appdef.Pointer(key)
				return at
			}
		}
		return b.at()()
	}
}

// keyOf is one value of another component.
func (b *builder) keyOf(position int, name string) spot {
	return func() appdef.Place {
		if p, ok := keyPlace(b.app, position, name); ok {
			return p
		}
		return placeOf(b.app, "components", strconv.Itoa(position))
	}
}

// grantedPorts are the ports that the instance needs, with the numbers that were granted or claimed.
func (b *builder) grantedPorts() []Port {
	ports := portsOf(b.app, b.req.Component, b.req.Index)
	for i := range ports {
		ports[i].Port = b.req.Allocation.granted(ports[i].Name)
	}
	return ports
}

// allocation is the request's allocation without the fields that no plan prints.
func (b *builder) allocation() Allocation {
	a := b.req.Allocation
	a.Ports, a.Devices = map[string]int{}, append([]string{}, a.Devices...)
	for _, p := range b.ports {
		if p.Port != 0 {
			a.Ports[p.Name] = p.Port
		}
	}
	return a
}

func number(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }
