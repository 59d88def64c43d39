package ask

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/cmd/internal/apps"
	"github.com/muster-agent/muster/cmd/internal/console"
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/registry/consul"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/wait"
	"github.com/muster-agent/muster/shim/wording"
)

// SaveOptions say how a save is waited for and printed.
type SaveOptions struct {
	JSON   bool
	NoWait bool          // return when it is asked for
	Wait   time.Duration // until all have saved
}

// Save asks a run to save its outputs, waits until all instances have, and prints where.
func Save(ctx context.Context, s console.Streams, k apps.Lookup, app string, o SaveOptions) error {
	if o.Wait < 0 {
		return exit.Usagef("save: --wait %s: want 0s or more", o.Wait)
	}
	facts, err := k.App(ctx, app)
	if err != nil {
		return err
	}
	if err := savable(facts); err != nil {
		return err
	}
	x := saving{
		streams: s, lookup: k, app: app, address: facts.Address, run: facts.Registry.App.Run,
		def: apps.Definition(facts.Registry.App), before: facts.Registry.Directive, id: strings.ToLower(rand.Text()),
	}
	if err := x.ask(ctx); err != nil {
		return err
	}
	if o.NoWait {
		if o.JSON {
			return console.PrintJSON(s.Out, saveReport{
				Version: 1, App: app, To: []string{},
				Failed: map[string]string{}, LeftOut: map[string][]string{},
			})
		}
		fmt.Fprintf(s.Out, "%s: asked to save\n", app)
		return nil
	}
	if err := x.await(ctx, o.Wait); err != nil {
		return err
	}
	return x.print(o.JSON)
}

// savable tells that there is something that runs and has outputs.
func savable(f apps.Facts) error {
	switch v := f.Verdict(); {
	case v != nil:
		return fmt.Errorf("%s is over: %s; what it has left is where its outputs are", f.ID, exit.VerdictText(*v))
	case f.Registry == nil:
		return f.NoRegistry("nobody else can ask all its instances")
	case f.Registry.Interrupted():
		return fmt.Errorf("%s has no live agent that could save: its run was interrupted and resumes when it is "+
			"launched again", f.ID)
	}
	app := apps.Definition(f.Registry.App)
	if len(app.Components) == 0 {
		return exit.With(exit.Registry, errors.New("save: the registry's definition of the app cannot be read"))
	}
	if !slices.ContainsFunc(app.Components, savesSomething) {
		return fmt.Errorf("%s has nothing to save: none of its components has a folder that is left "+
			"(muster.output.NAME)", f.ID)
	}
	return nil
}

func savesSomething(c appdef.Component) bool {
	return len(c.Settings.Outputs.To) > 0 && c.Settings.Outputs.Strategy != appdef.StrategyStream
}

// saving is one interim save on its way.
type saving struct {
	streams console.Streams
	lookup  apps.Lookup
	app     string
	address registry.Address
	run     string
	def     appdef.App
	before  registry.Directive // as it was before it was asked for
	id      string             // of the ask

	save    *registry.Save // that answers it; nil: none has begun
	members []consul.MemberStatus
}

func (x *saving) ask(ctx context.Context) error {
	by := cmp.Or(x.lookup.Who, apps.Asker())
	return x.lookup.Ask(ctx, x.address, x.app, registry.Ask{Kind: registry.AskSave, ID: x.id, By: by})
}

// await waits until all who can have answered.
func (x *saving) await(ctx context.Context, limit time.Duration) error {
	waiting, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var over error
	done := wait.Until(waiting, func() bool {
		st, err := x.lookup.Status(ctx, x.address, x.app)
		switch {
		case errors.Is(err, registry.ErrUnreachable) && x.lookup.SocketGone(ctx, x.address):
			if x.save == nil {
				over = x.ended()
			}
			return true
		case errors.Is(err, registry.ErrUnreachable): // it is waited for
			return false
		case err != nil:
			over = apps.RegistryError(x.address, err)
			return true
		}
		if d := st.Directive; d.Verdict != nil && x.save == nil || d.Run != x.run {
			over = x.ended()
			return true
		}
		return x.look(st)
	})
	switch {
	case over != nil:
		return over
	case done:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case x.save == nil:
		return exit.With(exit.Timeout, fmt.Errorf("%s: no save has begun after %s: its processes do not run yet, or "+
			"another save is under way; the request stands", x.app, limit))
	}
	saved, failed, open := x.count()
	return exit.With(exit.Timeout, fmt.Errorf("%s: after %s %d of %d have saved, %s not yet; the save goes on", x.app,
		limit, saved, saved+len(failed)+len(open), strings.Join(open, ", ")))
}

func (x *saving) ended() error {
	return fmt.Errorf("%s: its run ended before anything was saved", x.app)
}

// look takes in what the registry says; true: all have answered. A run that has ended meanwhile has answered.
func (x *saving) look(st consul.Status) bool {
	if s := st.Directive.Save; x.save == nil && s != nil {
		later := s.Seq - beforeSave(x.before) // a second one begins only after all who had asked before were answered
		if slices.Contains(s.Asks, x.id) || later > 1 {
			x.save = s
		}
	}
	if x.save == nil {
		return false
	}
	x.members = slices.DeleteFunc(slices.Clone(st.Members), func(m consul.MemberStatus) bool { return m.Run != x.run })
	_, _, open := x.count()
	return len(open) == 0 || st.Directive.Verdict != nil
}

func beforeSave(d registry.Directive) int {
	if d.Save == nil {
		return 0
	}
	return d.Save.Seq
}

// count sorts the instances that have outputs: how many have saved, who has not and why, and who has not answered. Who
// is not at work has nothing to save.
func (x *saving) count() (saved int, failed map[string]string, open []string) {
	failed = map[string]string{}
	for _, m := range x.members {
		switch {
		case m.Saved != nil && m.Saved.Seq >= x.save.Seq && m.Saved.Failed != "":
			failed[m.Instance.String()] = m.Saved.Failed
		case m.Saved != nil && m.Saved.Seq >= x.save.Seq && len(m.Saved.To) > 0:
			saved++
		case m.Saved == nil || m.Saved.Seq < x.save.Seq:
			if m.Live && m.Phase == registry.PhaseReady && x.hasOutputs(m.Instance) {
				open = append(open, m.Instance.String())
			}
		}
	}
	return saved, failed, open
}

func (x *saving) hasOutputs(in registry.Instance) bool {
	c := x.def.Component(in.Component)
	return c != nil && savesSomething(*c)
}

// saveReport is what `save --json` prints.
type saveReport struct {
	Version int               `json:"version"`
	App     string            `json:"app"`
	Stamp   string            `json:"stamp,omitempty"` // empty: it was not waited for
	To      []string          `json:"to"`              // folders, with one of each instance in them
	Saved   int               `json:"saved"`
	Files   int               `json:"files"`
	Bytes   int64             `json:"bytes"`
	Failed  map[string]string `json:"failed"` // by instance: why not
	// LeftOut are files that were written to whenever they were copied, by instance.
	LeftOut map[string][]string `json:"left_out"`
}

func (x *saving) report() saveReport {
	r := saveReport{Version: 1, App: x.app, Stamp: x.save.Stamp, To: []string{}, LeftOut: map[string][]string{}}
	r.Saved, r.Failed, _ = x.count()
	for _, m := range x.members {
		if m.Saved == nil || m.Saved.Seq < x.save.Seq || m.Saved.Failed != "" {
			continue
		}
		r.Files, r.Bytes = r.Files+m.Saved.Files, r.Bytes+m.Saved.Bytes
		if len(m.Saved.LeftOut) > 0 {
			r.LeftOut[m.Instance.String()] = m.Saved.LeftOut
		}
		for _, to := range m.Saved.To {
			if !slices.Contains(r.To, to) {
				r.To = append(r.To, to)
			}
		}
	}
	slices.Sort(r.To)
	return r
}

// print says what was saved. That nobody has is an error.
func (x *saving) print(asJSON bool) error {
	r := x.report()
	if asJSON {
		if err := console.PrintJSON(x.streams.Out, r); err != nil {
			return err
		}
	} else {
		x.say(r)
	}
	why := r.why()
	if r.Saved == 0 {
		return fmt.Errorf("%s: nothing was saved: %s", x.app, wording.OrNone(why))
	}
	for _, line := range why {
		fmt.Fprintf(x.streams.Err, "%s: %s\n", x.app, line)
	}
	return nil
}

// say prints for people where the save is, and what is not in it.
func (x *saving) say(r saveReport) {
	out := ""
	for _, in := range slices.Sorted(maps.Keys(r.LeftOut)) {
		for _, path := range r.LeftOut[in] {
			out += ", " + in + " " + path
		}
	}
	if out != "" {
		out = "; left out, for they are written to all the time: " + strings.TrimPrefix(out, ", ")
	}
	for _, to := range r.To {
		fmt.Fprintf(x.streams.Out, "%s: saved by %s in %s%s\n", x.app, appdef.Counted(r.Saved, "instance"), to, out)
	}
}

// why are those who have not saved, in words.
func (r saveReport) why() []string {
	var why []string
	for in, text := range r.Failed {
		why = append(why, in+" has not saved: "+text)
	}
	slices.Sort(why)
	return why
}

// beforeStop follows the save that a stop asks for, until the run has its verdict.
func (x *saving) beforeStop(ctx context.Context) {
	wait.Until(ctx, func() bool {
		st, err := x.lookup.Status(ctx, x.address, x.app)
		return err == nil && (st.Directive.Run != x.run || x.look(st) && st.Directive.Verdict != nil)
	})
}

// tellStop says what a stop has saved first. An instance that has not saved is an error: its outputs are lost.
func (x *saving) tellStop() error {
	switch {
	case x.save == nil && slices.ContainsFunc(x.def.Components, savesSomething):
		return fmt.Errorf("%s: nothing was saved before the stop", x.app)
	case x.save == nil:
		fmt.Fprintf(x.streams.Err, "%s: nothing was saved before the stop: no component has a folder that is left\n",
			x.app)
		return nil
	}
	r := x.report()
	x.say(r)
	_, _, open := x.count()
	for _, in := range open {
		fmt.Fprintf(x.streams.Err, "%s: %s has not saved: there was no more time\n", x.app, in)
	}
	for _, line := range r.why() {
		fmt.Fprintf(x.streams.Err, "%s: %s\n", x.app, line)
	}
	if n := len(open) + len(r.Failed); n > 0 {
		return fmt.Errorf("%s: stopped, and %s had not saved", x.app, appdef.Counted(n, "instance"))
	}
	return nil
}
