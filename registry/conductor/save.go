package conductor

import (
	"slices"
	"strconv"
	"time"

	"github.com/muster-agent/muster/registry"
)

// stampForm is HBox's yyyy_MM_dd_HH_mm_ss.
const stampForm = "2006_01_02_15_04_05"

// mostSaveAsks limits how many asks one save answers: the directive lists them.
const mostSaveAsks = 16

// Saves tells whether any component has outputs that can be saved during the run.
func (f Facts) Saves() bool {
	return slices.ContainsFunc(f.Components, func(c ComponentFacts) bool { return c.Saves })
}

// save begins a save when it is due or asked for. One save runs at a time and answers all asks that came meanwhile.
// True means that the step's effect is decided.
func (r *decision) save() bool {
	if !r.c.Facts.Saves() {
		return r.dropSaves(func(registry.Ask) bool { return true })
	}
	var begun []string
	if r.d.Save != nil {
		begun = r.d.Save.Asks
	}
	if r.dropSaves(func(a registry.Ask) bool { return slices.Contains(begun, a.ID) }) {
		return true
	}
	var asks []string
	stop := -1
	for i, a := range r.v.Asks {
		if a.Kind == registry.AskStop {
			r.wakeAt(r.c.stopAt.Add(saveLimit(a)))
		}
		switch {
		case a.Kind == registry.AskStop && slices.Contains(begun, a.ID):
			stop = i
		case (a.Kind == registry.AskSave || a.Kind == registry.AskStop) && !slices.Contains(asks, a.ID) &&
			len(asks) < mostSaveAsks:
			asks = append(asks, a.ID)
		}
	}
	if len(asks) == 0 && stop < 0 && !r.saveDue() || r.saving() {
		return false
	}
	if stop >= 0 { // all have saved
		return r.only(stopped(r.c, r.now, r.v, r.v.Asks[stop]))
	}
	n := r.next()
	n.Save = &registry.Save{Seq: saves(r.d) + 1, Stamp: r.stamp(), Asks: asks}
	return r.only(Begin{Index: r.v.DirectiveIndex, Directive: n})
}

// dropSaves deletes an ask for a save that is served or never can be.
func (r *decision) dropSaves(served func(registry.Ask) bool) bool {
	i := slices.IndexFunc(r.v.Asks, func(a registry.Ask) bool { return a.Kind == registry.AskSave && served(a) })
	return i >= 0 && r.only(DropAsk{Ask: r.v.Asks[i]})
}

// saveDue tells whether the time of the next save has come.
func (r *decision) saveDue() bool {
	if r.c.Facts.SaveEvery <= 0 {
		return false
	}
	at := latest(r.c.saveAt, r.c.since).Add(r.c.Facts.SaveEvery)
	if !at.After(r.now) {
		return true
	}
	r.wakeAt(at)
	return false
}

// saving tells whether a member is still saving. It is called when another action waits for the end of the save: then
// the records of members without an answer are read.
func (r *decision) saving() bool {
	if r.d.Save == nil {
		return false
	}
	open := r.unsaved()
	period := recordsEvery
	if len(open) > manyRecords {
		period = manyEvery
	}
	for _, in := range open {
		rec := r.v.Records[in]
		if at := latest(rec.At, r.v.AllAt).Add(period); at.After(r.now) {
			r.wakeAt(at)
		} else if !slices.Contains(r.due, in) {
			r.due = append(r.due, in)
		}
	}
	return len(open) > 0
}

// unsaved are the running members that have not answered the last save.
func (r *decision) unsaved() []registry.Instance {
	var open []registry.Instance
	for i, f := range r.c.Facts.Components {
		if !f.Saves || !f.Waited {
			continue
		}
		for k := range r.c.Facts.count(r.d, i) {
			in := registry.Instance{Component: f.Name, Index: k}
			if m := r.v.Records[in].Member; r.v.Ready[in] && !answered(m, r.d) {
				open = append(open, in)
			}
		}
	}
	return open
}

func answered(m registry.Member, d registry.Directive) bool {
	return m.Run == d.Run && m.Saved != nil && m.Saved.Seq >= saves(d)
}

// stamp is the time of a save that begins now. No two saves have the same.
func (r *decision) stamp() string {
	stamp := wall(r.now).Format(stampForm)
	if r.d.Save == nil || stamp > r.d.Save.Stamp {
		return stamp
	}
	last, err := time.Parse(stampForm, r.d.Save.Stamp)
	if err != nil {
		return stamp // no conductor has written this text
	}
	return last.Add(time.Second).Format(stampForm)
}

// stopping starts the clock of a save that is asked for before a stop.
func (t timers) stopping(asks []registry.Ask, now time.Time) timers {
	asked := slices.ContainsFunc(asks, func(a registry.Ask) bool {
		return a.Kind == registry.AskStop && a.Args["save"] != ""
	})
	if !asked {
		t.stopAt = time.Time{}
	} else if t.stopAt.IsZero() {
		t.stopAt = now
	}
	return t
}

// savesFirst tells whether a stop waits for a save: for a limited time, if a running member has outputs to save.
func (c State) savesFirst(now time.Time, d registry.Directive, a registry.Ask) bool {
	return d.Act == registry.ActRun && c.Facts.Saves() && now.Before(c.stopAt.Add(saveLimit(a)))
}

// saveLimit is how long a stop waits for the save that it asks for; 0: it asks for none.
func saveLimit(a registry.Ask) time.Duration {
	limit, err := strconv.ParseFloat(a.Args["save"], 64)
	if err != nil || !(limit > 0) || limit > mostSaveLimit.Seconds() {
		return 0
	}
	return time.Duration(limit * float64(time.Second))
}

// mostSaveLimit limits how long a save may delay a stop.
const mostSaveLimit = 24 * time.Hour
