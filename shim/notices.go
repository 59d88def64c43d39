package shim

import (
	"context"

	"github.com/muster-agent/muster/shim/machine"
	"github.com/muster-agent/muster/shim/notices"
	"github.com/muster-agent/muster/shim/notices/delivery"
)

// teller tells the operator's notifier of the events that this agent answers for.
type teller struct {
	a     *agent
	watch notices.Watch
	to    *delivery.Sender // nil: this host has no notifier
}

// makeTeller begins to tell, if the host has a notifier.
func (a *agent) makeTeller(ctx context.Context) {
	rules := a.policy.Notify
	a.teller = &teller{a: a, watch: notices.Watch{Self: notices.Self{
		App: a.id.appID, Name: a.app.Name, Host: a.alloc.Host, Inc: a.inc,
	}}}
	if rules.To() == "" {
		return
	}
	a.teller.to = delivery.New(ctx, delivery.Config{
		Log: a.log, Warn: a.journal.Warn, Mended: a.journal.Mended, Target: delivery.Target{
			Command: rules.Command, URL: rules.URL, HeaderFile: rules.HeaderFile, CAFile: rules.CAFile,
			Limit: rules.Limit,
		},
	})
	a.atEnd(a.teller.to.Close)
}

// heard is called by the machine's loop.
func (t *teller) heard(before machine.State, e machine.Event, after machine.State) {
	for _, m := range t.watch.Heard(before, e, after) {
		t.tell(m)
	}
}

func (t *teller) tell(m notices.Message) {
	if t.a.policy.Notify.Wants(m.Event) {
		t.to.Send(m.Hide(t.a.hidden.Hide))
	}
}
