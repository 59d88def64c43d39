package main

import (
	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/registry/consul"
	"github.com/muster-agent/muster/shim/plan"
	"github.com/muster-agent/muster/shim/publisher"
)

// sliderView is the app in Slider's terms, as its client sees it from outside.
func sliderView(app *appdef.App, known consul.Status) publisher.View {
	user := whoAsks()
	return publishedView(app, known, user, func(in registry.Instance) plan.Request {
		return plan.Request{AppID: known.ID, Component: in.Component, Index: in.Index, Allocation: plan.Allocation{User: user}}
	})
}
