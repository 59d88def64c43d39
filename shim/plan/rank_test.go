package plan

import (
	"testing"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/registry/conductor"
)

// TestGangAtItsEnd: what ends the app, and whether that is the end.
func TestGangAtItsEnd(t *testing.T) {
	app := appdef.App{Dialect: "slider", Settings: appdef.AppSettings{
		Retry: appdef.RetryForever, Total: appdef.Total{MinSucceeded: 2, MinFailed: 3, FailedShare: 0.5},
	}}
	facts := Gang(app, Request{})
	if want := (conductor.TotalFacts{MinSucceeded: 2, MinFailed: 3, FailedShare: 0.5}); facts.Total != want {
		t.Errorf("got %+v, want %+v", facts.Total, want)
	}
	if facts.Retry != conductor.RetryForever || facts.RetryTransient {
		t.Errorf("got retry %d, transient failures uncounted %t, want %d, false", facts.Retry, facts.RetryTransient, conductor.RetryForever)
	}
	app.Dialect, app.Settings.Retry = "pai", appdef.RetryAlways
	app.Components = []appdef.Component{{Name: "worker", Limits: appdef.Limits{Autoscale: 0.5}}}
	if facts = Gang(app, Request{}); facts.Retry != conductor.RetryAlways || !facts.RetryTransient {
		t.Errorf("of PAI: got retry %d, transient failures uncounted %t, want %d, true", facts.Retry, facts.RetryTransient, conductor.RetryAlways)
	}
	if !facts.Components[0].Grows {
		t.Error("a component with muster.memory.autoscale: got no growth")
	}
}
