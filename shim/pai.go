package shim

import (
	"io"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/machine"
	"github.com/muster-agent/muster/shim/paireport"
	"github.com/muster-agent/muster/shim/plan"
	"github.com/muster-agent/muster/shim/status"
)

// paiTail is how much of a log a report is made from, in bytes: no version of OpenPAI shows more.
const paiTail = 8 << 10

// paiRow is the row of OpenPAI's table for the end of this instance; nil if the app is no OpenPAI job, or has not
// ended.
func paiRow(p *plan.PAI, s machine.State) *status.PAI {
	f, ok := paiFacts(s)
	if p == nil || !ok {
		return nil
	}
	e := paireport.Classify(p.Version, f)
	return &status.PAI{Code: e.Code, Phrase: e.Phrase, Type: e.Type, Reaction: e.Reaction}
}

// paiFacts are the facts about the end of an instance; false: it has not ended.
func paiFacts(s machine.State) (paireport.Facts, bool) {
	v, x := s.Directive.Verdict, s.Exit
	f := paireport.Facts{}
	if x != nil {
		f = paireport.Facts{
			Code: x.Code, Signal: x.Signal, OOM: x.OOM, Class: x.Class, Message: x.Message,
			Reason: x.Why(),
		}
	}
	switch {
	case s.Proc != 0:
		return f, false
	case s.Reason == machine.ForFlex:
		return paireport.Facts{Class: registry.ClassFlex}, true
	case s.Reason == machine.ForAnother:
		return paireport.Facts{Class: registry.ClassHost}, true
	case s.Reason == machine.ForTimeout:
		f.Class = registry.ClassTimeout
	case v != nil && (x == nil || s.Reason == machine.ForVerdict || s.Reason == machine.ForRebuild):
		if f.End = paireport.WithApp; v.Outcome == registry.Stopped {
			f.End = paireport.ByUser
		}
	case x == nil, s.Reason == machine.ForRebuild: // it has not run, or will run again
		return f, false
	}
	if v != nil && v.First == s.Instance.String() {
		f.Reason, f.Solution = v.Cause, v.Advice
	}
	return f, true
}

// reportPAI ends the output of a failed process with OpenPAI's report. An app that is no OpenPAI job is judged by the
// newest tables.
func (a *agent) reportPAI(to io.Writer, final machine.State) {
	version := appdef.PAI1
	if p := a.currentPlan().PAI; p != nil {
		version = p.Version
	}
	f, ok := paiFacts(final)
	if !ok || f.End != paireport.ByItself || paireport.Classify(version, f).Code == 0 {
		return
	}
	marks := a.runs().Marks()
	for _, name := range []string{"stderr.log", "stdout.log"} {
		if at, began := marks[name]; f.User == "" && began {
			f.User = a.instanceLogFolder().Tail(name, at, paiTail)
		}
	}
	f.Runtime = a.instanceLogFolder().Tail("agent.log", 0, paiTail)
	_, _ = io.WriteString(to, paireport.ExitReport(version, f)) // the reader may have ended
}
