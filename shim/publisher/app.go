package publisher

import (
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/registry/consul"
	"github.com/muster-agent/muster/shim/plan"
)

// ViewOf is the app in Slider's terms. request says what is known of an instance beside its record.
func ViewOf(app *appdef.App, known consul.Status, user string, request func(registry.Instance) plan.Request) View {
	v := View{
		App:     appView{Name: known.ID, ID: known.ID, User: user, Version: app.Release, Created: known.App.Created},
		AppConf: app.Config, Resources: app.Resources, Configs: map[string]configuration{},
	}
	v.Groups = groupsOf(app)
	members := known.Members
	order := map[string]int{}
	for i, c := range plan.Order(app) {
		order[c.Name] = i
		v.Components = append(v.Components, componentOf(c, known, members))
	}
	slices.SortStableFunc(members, func(x, y consul.MemberStatus) int {
		return order[x.Component] - order[y.Component]
	})
	hosts, ports := map[string][]string{}, map[string]map[string]int{}
	for _, m := range members {
		if m.Live {
			hosts[m.Component] = append(hosts[m.Component], m.Addr)
			if ports[m.Component] == nil {
				ports[m.Component] = m.Ports
			}
		}
	}
	portsOf := func(component string) map[string]int { return ports[component] }
	for _, m := range members {
		one := memberOf(m)
		if m.Live {
			asked := request(m.Instance)
			asked.Allocation.Host, asked.Allocation.Ports = m.Addr, m.Ports
			around := plan.Around{Hosts: hosts, Ports: portsOf, Work: m.WorkDir, Log: m.LogDir}
			publishAll(&v, plan.PublishedBy(*app, asked, around), m.Since, one.Exports)
		}
		v.Members = append(v.Members, one)
	}
	return v
}

// publishAll puts what a member publishes for the whole app into the view: the first of several has the word.
func publishAll(v *View, p plan.Published, at time.Time, exports map[string]string) {
	for name, entries := range p.Configs {
		if _, taken := v.Configs[name]; !taken {
			v.Configs[name] = configuration{Entries: entries, Updated: at}
		}
	}
	for name, value := range p.Exports {
		taken := slices.ContainsFunc(v.Members, func(m memberView) bool { return m.Exports[name] != "" })
		if !taken {
			exports[name] = value
		}
	}
}

// groupsOf are the export groups, with whose each export is.
func groupsOf(app *appdef.App) []groupView {
	var groups []groupView
	for _, g := range app.ExportGroups {
		group := groupView{Name: g.Name}
		for _, e := range g.Exports {
			level := levelComponent
			ref := appdef.ExportRef{Group: g.Name, Name: e.Name}
			if slices.ContainsFunc(app.Components, func(c appdef.Component) bool {
				return slices.Contains(c.AppExports, ref)
			}) {
				level = levelApplication
			}
			group.Exports = append(group.Exports, exported{Name: e.Name, Level: level})
		}
		groups = append(groups, group)
	}
	return groups
}

func componentOf(c *appdef.Component, known consul.Status, members []consul.MemberStatus) componentView {
	out := componentView{
		Name: c.Name, Instances: c.Instances, Priority: c.Priority, Resources: c.Resources,
		Config: c.Config,
	}
	if n, ok := known.App.Counts[c.Name]; ok {
		out.Instances = n
	}
	for _, m := range members {
		if m.Component != c.Name {
			continue
		}
		out.Started += m.Attempt
		switch m.Phase {
		case registry.PhaseEnded:
			out.Completed++
		case registry.PhaseFailed:
			out.Failed++
		case registry.PhaseJoined, registry.PhaseReady, registry.PhaseLeft, registry.PhaseLost:
		}
		out.FailedRecently += m.Budget.Used
		switch {
		case m.Phase == registry.PhaseLost, m.Exit != nil && m.Exit.Class == registry.ClassHost:
			out.NodeFailed++
		case m.Exit == nil:
		case m.Exit.Class == registry.ClassPreempted:
			out.Preempted++
		case m.Phase == registry.PhaseFailed && m.Exit.Code == nil && m.Exit.Signal == 0:
			out.StartFailed++
		}
	}
	return out
}

func memberOf(m consul.MemberStatus) memberView {
	exports := map[string]string{}
	maps.Copy(exports, m.Exports)
	return memberView{
		Component: m.Component, Index: m.Index, Instance: m.Instance.String(), Host: m.Addr, ContainerID: m.ContainerID,
		Tag: strconv.Itoa(m.Index + 1), Ports: m.Ports, Exports: exports, Since: m.Since, Phase: m.Phase, Up: m.Live,
		LogDir: m.LogDir, WorkDir: m.WorkDir,
	}
}
