package main

import (
	"slices"
	"strconv"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/registry/consul"
	"github.com/muster-agent/muster/shim/plan"
	"github.com/muster-agent/muster/shim/publisher"
)

// sliderView is the app in Slider's terms.
func sliderView(app *appdef.App, known consul.Status) publisher.View {
	v := publisher.View{
		App:     publisher.App{Name: known.ID, ID: known.ID, User: whoAsks(), Version: app.Release, Created: known.App.Created},
		AppConf: app.Config, Resources: app.Resources,
	}
	for _, g := range app.ExportGroups {
		group := publisher.Group{Name: g.Name}
		for _, e := range g.Exports {
			group.Exports = append(group.Exports, publisher.Export{Name: e.Name, Level: publisher.LevelComponent})
		}
		v.Groups = append(v.Groups, group)
	}
	for _, c := range app.Components {
		one := publisher.Component{Name: c.Name, Instances: c.Instances, Priority: c.Priority, Resources: c.Resources, Config: c.Config}
		for _, m := range known.Members {
			if m.Component == c.Name {
				one.Started += m.Attempt
			}
		}
		v.Components = append(v.Components, one)
	}
	for _, in := range plan.Instances(app) {
		i := slices.IndexFunc(known.Members, func(m consul.MemberStatus) bool { return m.Instance == in })
		if i < 0 {
			continue
		}
		m := known.Members[i]
		v.Members = append(v.Members, publisher.Member{
			Component: m.Component, Index: m.Index, Instance: m.Instance.String(), Host: m.Addr, ContainerID: m.ContainerID,
			Tag: strconv.Itoa(m.Index + 1), Ports: m.Ports, Exports: m.Exports, Since: m.Since, Phase: m.Phase, Up: m.Live,
		})
	}
	return v
}
