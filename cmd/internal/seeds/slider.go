package seeds

import (
	"cmp"
	"strings"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/cmd/internal/apps"
	"github.com/muster-agent/muster/cmd/internal/view"
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/registry/consul"
	"github.com/muster-agent/muster/shim/plan"
	"github.com/muster-agent/muster/shim/publisher"
)

// Slider is the app as Slider's REST shows it.
func (a App) Slider() publisher.View {
	self, _, _ := strings.Cut(apps.Asker(), "@") // Slider's paths have a user in them
	return SliderView(a.facts, a.def, cmp.Or(a.user(), self))
}

// SliderView is an app as Slider's REST shows it, from its definition and what was found out. One that does not run
// has components, and no members.
func SliderView(f apps.Facts, app appdef.App, user string) publisher.View {
	known := consul.Status{ID: f.ID, Members: ended(f)}
	if f.Registry != nil {
		known = *f.Registry
		if known.Directive.Counts != nil {
			app = app.WithCounts(known.Directive.Counts)
		}
	}
	v := publisher.ViewOf(&app, known, user, func(in registry.Instance) plan.Request {
		return plan.Request{
			AppID: f.ID, Run: known.App.Run, Component: in.Component, Index: in.Index,
			Allocation: plan.Allocation{User: user},
		}
	})
	phase := f.Phase()
	v.Over = phase == "done" || phase == "interrupted"
	return v
}

// ended are the instances of a run that is over, as its registry would have them. What ended after the verdict was told
// to.
func ended(f apps.Facts) []consul.MemberStatus {
	verdict := f.Verdict()
	if verdict == nil {
		return nil
	}
	var members []consul.MemberStatus
	for _, row := range view.Of(f).Instances {
		m := consul.MemberStatus{Instance: registry.Instance{Component: row.Component, Index: row.Index}}
		m.Attempt, m.Phase = row.Attempt, registry.PhaseLeft
		switch {
		case row.ExitInfo == nil || row.ExitInfo.At.After(verdict.At):
		case row.Exit != nil && *row.Exit == 0:
			m.Phase = registry.PhaseEnded
		default:
			m.Phase = registry.PhaseFailed
		}
		members = append(members, m)
	}
	return members
}
