package main

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/registry/consul"
	"github.com/muster-agent/muster/shim/plan"
	"github.com/muster-agent/muster/shim/publisher"
)

// Each agent answers Slider's REST for the whole app, at a URL that only its own container is told.

// publish opens the container's URL. An app of another dialect has no scripts that would ask there.
func (a *agent) publish() error {
	if a.app.Dialect != "slider" {
		return nil
	}
	l, address, err := publisher.Listen("127.0.0.1") // a container shares the host's network
	if err != nil {
		return err
	}
	a.publisher = address
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := publisher.Serve(ctx, l, a.withFolders(publisher.Prefix(address), publisher.Handler(publisher.Prefix(address), appSource{a}))); err != nil {
			a.log.Warn("publisher", "err", err)
		}
	}()
	a.atEnd(func() { cancel(); <-done })
	return nil
}

// appSource is the whole app as the registry has it.
type appSource struct{ *agent }

// View reads the app's members and says what they publish.
func (s appSource) View(ctx context.Context) (publisher.View, error) {
	known, err := s.client.Status(ctx, s.id.appID)
	if err != nil {
		return publisher.View{}, err
	}
	return publishedView(&s.app.App, known, s.alloc.User, func(in registry.Instance) plan.Request {
		request := s.request(in)
		request.Allocation.Ports, request.Allocation.ContainerID = nil, ""
		return request
	}), nil
}

// Stop asks the gang to end.
func (s appSource) Stop(ctx context.Context, by string) error {
	return s.client.Ask(ctx, s.id.appID, registry.Ask{
		Version: 1, Kind: registry.AskStop, ID: newID(), By: "stop", Args: map[string]string{"who": by},
	})
}

// publishedView is the app in Slider's terms. request says what is known of an instance beside its record.
func publishedView(app *appdef.App, known consul.Status, user string, request func(registry.Instance) plan.Request) publisher.View {
	v := publisher.View{
		App:     publisher.App{Name: known.ID, ID: known.ID, User: user, Version: app.Release, Created: known.App.Created},
		AppConf: app.Config, Resources: app.Resources, Configs: map[string]publisher.Config{},
	}
	v.Groups = groupsOf(app)
	members := known.Members
	order := map[string]int{}
	for i, c := range plan.Order(app) {
		order[c.Name] = i
		v.Components = append(v.Components, componentOf(c, known, members))
	}
	slices.SortStableFunc(members, func(x, y consul.MemberStatus) int { return order[x.Component] - order[y.Component] })
	hosts := map[string][]string{}
	for _, m := range members {
		if m.Live {
			hosts[m.Component] = append(hosts[m.Component], m.Addr)
		}
	}
	for _, m := range members {
		one := memberOf(m)
		if m.Live {
			asked := request(m.Instance)
			asked.Allocation.Host, asked.Allocation.Ports = m.Addr, m.Ports
			publishAll(&v, plan.PublishedBy(*app, asked, hosts), m.Since, one.Exports)
		}
		v.Members = append(v.Members, one)
	}
	return v
}

// publishAll puts what a member publishes for the whole app into the view: the first of several has the word.
func publishAll(v *publisher.View, p plan.Published, at time.Time, exports map[string]string) {
	for name, entries := range p.Configs {
		if _, taken := v.Configs[name]; !taken {
			v.Configs[name] = publisher.Config{Entries: entries, Updated: at}
		}
	}
	for name, value := range p.Exports {
		taken := slices.ContainsFunc(v.Members, func(m publisher.Member) bool { return m.Exports[name] != "" })
		if !taken {
			exports[name] = value
		}
	}
}

// groupsOf are the export groups, with whose each export is.
func groupsOf(app *appdef.App) []publisher.Group {
	var groups []publisher.Group
	for _, g := range app.ExportGroups {
		group := publisher.Group{Name: g.Name}
		for _, e := range g.Exports {
			level := publisher.LevelComponent
			ref := appdef.ExportRef{Group: g.Name, Name: e.Name}
			if slices.ContainsFunc(app.Components, func(c appdef.Component) bool { return slices.Contains(c.AppExports, ref) }) {
				level = publisher.LevelApplication
			}
			group.Exports = append(group.Exports, publisher.Export{Name: e.Name, Level: level})
		}
		groups = append(groups, group)
	}
	return groups
}

func componentOf(c *appdef.Component, known consul.Status, members []consul.MemberStatus) publisher.Component {
	out := publisher.Component{Name: c.Name, Instances: c.Instances, Priority: c.Priority, Resources: c.Resources, Config: c.Config}
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
	}
	return out
}

func memberOf(m consul.MemberStatus) publisher.Member {
	exports := map[string]string{}
	maps.Copy(exports, m.Exports)
	return publisher.Member{
		Component: m.Component, Index: m.Index, Instance: m.Instance.String(), Host: m.Addr, ContainerID: m.ContainerID,
		Tag: strconv.Itoa(m.Index + 1), Ports: m.Ports, Exports: exports, Since: m.Since, Phase: m.Phase, Up: m.Live,
		LogDir: m.LogDir, WorkDir: m.WorkDir,
	}
}
