package explorer

import (
	"slices"
	"strings"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/registry/conductor"
)

// rule names what a setting is explored without: an operation of a transaction, or one of the hooks below.
type rule struct {
	Txn  string `json:",omitzero"`
	Verb string `json:",omitzero"`
	Key  string `json:",omitzero"`
	Hook string `json:",omitzero"`
}

func (r rule) String() string {
	if r.Hook != "" {
		return r.Hook
	}
	if r == (rule{}) {
		return "nothing"
	}
	return strings.TrimSpace(r.Txn + ": " + r.Verb + " " + r.Key)
}

// The hooks.
const (
	noTimers    = "timers are carried from step to step"
	noGrace     = "a holder that is not proved gone is waited for"
	noVerdict   = "a newcomer reads the verdict of its run"
	noWaiting   = "a result that counts is not claimed"
	noProof     = "the old process is proved gone before the acknowledgement"
	noFence     = "a member that is cut off stops its process"
	noMismatch  = "nobody runs with a row that is not its own"
	noNewcomers = "newcomers conduct"
	noClean     = "a newcomer kills what a dead agent left"
	noStrays    = "what was asked of another run is dropped"
	noProlonged = "a silence of the registry prolongs the timers"
	noSuperior  = "a member whose index another has ends"
	noHolders   = "nobody founds an app of which agents live"
	noContact   = "contact is that the index is mine"
	noFounding  = "a member of an older founding ends"
	noCarry     = "a result is carried through the leave"
	noOrder     = "a component starts when those before it are up"
	noAnew      = "results from before a full restart do not count"
	noRecord    = "a reported end is a proof"
	noAgain     = "a member acknowledges a generation again"
	noAnyPhase  = "a member that is not in the roster rebuilds it in any phase"
	noGuard     = "a guard kills what its agent has left"
)

var hooks = []string{
	noTimers, noGrace, noVerdict, noWaiting, noProof, noFence, noMismatch, noNewcomers, noClean, noStrays, noProlonged, noSuperior, noHolders, noContact, noFounding, noCarry, noOrder, noAnew, noRecord, noAgain, noAnyPhase, noGuard,
}

// without tells whether a hook is taken away.
func (s *setting) without(hook string) bool { return s.Without.Hook == hook || s.And.Hook == hook }

// anyCheck stands for all checks of a transaction: those that it names, that of a cas, and that of a lock.
const anyCheck = "all checks"

// cut takes the rule's operation out of a transaction; a cas becomes a set.
func (r rule) cut(name string, ops []op) []op {
	if r.Txn != name {
		return ops
	}
	var out []op
	for _, o := range ops {
		check := strings.HasPrefix(o.Verb, "check-") || o.Verb == verbCAS || o.Verb == verbLock
		switch {
		case !(r.Verb == anyCheck && check) && !(o.Verb == r.Verb && class(o.Key) == r.Key):
			out = append(out, o)
		case o.Verb == verbLock && r.Verb == anyCheck:
			o.Verb = verbSteal
			out = append(out, o)
		case o.Verb == verbCAS:
			o.Verb = verbSet
			out = append(out, o)
		}
	}
	return out
}

// shape is what a transaction does to keys of which kinds.
func shape(ops []op) string {
	var all []string
	for _, o := range ops {
		all = append(all, o.Verb+" "+class(o.Key))
	}
	slices.Sort(all)
	return strings.Join(slices.Compact(all), ", ")
}

// class is the kind of a key.
func class(key string) string {
	c, _, _ := strings.Cut(key, "/")
	return c
}

// admission changes what a newcomer decides.
func (s *setting) admission(d conductor.Admission, l conductor.Snapshot, me conductor.Newcomer) conductor.Admission {
	claim := func() conductor.Admission {
		l.Member = &registry.Member{Inc: "nobody", Run: me.Run, Phase: registry.PhaseLeft}
		return conductor.Admit(l, me, nil)
	}
	switch d := d.(type) {
	case conductor.Claim:
		if s.without(noRecord) && d.Proof == conductor.ProofRecord {
			return conductor.Standby{Holder: *l.Member}
		}
	case conductor.Standby:
		if s.without(noGrace) && l.LiveSession == "" {
			return claim()
		}
	case conductor.Wait:
		if s.without(noWaiting) && l.LiveSession == "" {
			return claim()
		}
	}
	return d
}

// asked changes what a conductor hears of an ask: without its run and generation none is a stray.
func (s *setting) asked(all []registry.Ask) []registry.Ask {
	if !s.without(noStrays) {
		return all
	}
	all = slices.Clone(all)
	for k := range all {
		all[k].Run, all[k].Gen = "", 0
	}
	return all
}

// matters tells whether a transaction without this rule does what it would not do with it. why: it was refused.
func (r rule) matters(s store, ops []op, why string) bool {
	if r.Verb == anyCheck {
		_, with := s.commit(ops)
		return why == "" && with != ""
	}
	if why != "" {
		return false
	}
	return slices.ContainsFunc(ops, func(o op) bool {
		return o.Verb == r.Verb && class(o.Key) == r.Key && (o.Verb == verbLock || len(s.under(o.Key)) > 0)
	})
}
