package ask

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/cmd/internal/apps"
	"github.com/muster-agent/muster/cmd/internal/console"
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/registry/consul"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/wait"
)

// FlexOptions say how a flex is asked for.
type FlexOptions struct {
	Patience time.Duration // the longest wait
	JSON     bool
	Explain  bool // only say what it would do
	NoWait   bool // return when the run was asked
}

// Flex asks a run for other counts, COMPONENT=COUNT each, and waits until they are in force.
func Flex(
	ctx context.Context, s console.Streams, k apps.Lookup, app string, args []string, o FlexOptions,
) error {
	want, err := parseCounts(args)
	if err != nil {
		return err
	}
	if o.Patience < 0 {
		return exit.Usagef("flex: --wait %s: want 0s or more", o.Patience)
	}
	facts, err := k.App(ctx, app)
	if err != nil {
		return err
	}
	if err := flexible(facts); err != nil {
		return err
	}
	def := apps.Definition(facts.Registry.App)
	if err := inBounds(def, want); err != nil {
		return err
	}
	if leavesNobody(def, facts.Registry.Directive, want) {
		return exit.With(exit.Definition, fmt.Errorf("flex: %s would have no instance left whose end ends it; "+
			"muster stop %s ends it", facts.ID, facts.ID))
	}
	if o.Explain {
		return explain(s, facts.ID, def, facts.Registry.Directive, want, o.JSON)
	}
	x := flexing{streams: s, lookup: k, app: app, address: facts.Address, run: facts.Registry.App.Run, want: want}
	x.before = facts.Registry.Directive.Counts
	if !x.asked(facts.Registry.Directive) {
		if err := x.ask(ctx); err != nil {
			return err
		}
	}
	if o.NoWait {
		return nil
	}
	d, err := x.await(ctx, o.Patience)
	if err != nil {
		return err
	}
	return x.print(d, o.JSON)
}

// explain prints what a flex to the wanted counts would do.
func explain(
	s console.Streams, id string, def appdef.App, d registry.Directive, want map[string]int, asJSON bool,
) error {
	now := def.WithCounts(d.Counts)
	have := now.Counts()
	after := maps.Clone(have)
	maps.Copy(after, want)
	p := explainFlex(now, have, after)
	if p.App = id; asJSON {
		return console.PrintJSON(s.Out, p)
	}
	p.print(s.Out)
	return nil
}

// parseCounts reads `worker=6 ps=2`.
func parseCounts(args []string) (map[string]int, error) {
	want := map[string]int{}
	for _, arg := range args {
		name, text, ok := strings.Cut(arg, "=")
		n, err := strconv.Atoi(text)
		if !ok || name == "" || err != nil || n < 0 {
			return nil, exit.Usagef("flex: %q: want COMPONENT=COUNT, such as worker=6", arg)
		}
		if before, twice := want[name]; twice && before != n {
			return nil, exit.Usagef("flex: %s: got both %d and %d", name, before, n)
		}
		want[name] = n
	}
	return want, nil
}

// flexible tells that there is a run that can change.
func flexible(f apps.Facts) error {
	switch v := f.Verdict(); {
	case v != nil:
		return fmt.Errorf("%s is over: %s; a new run has the counts of muster run --instances, or of "+
			"muster slider flex",
			f.ID, exit.VerdictText(*v))
	case f.Registry == nil:
		return f.NoRegistry("nobody else knows its counts")
	case f.Registry.Interrupted():
		return fmt.Errorf("%s has no live agent that could change anything: its run was interrupted and resumes when "+
			"it is launched again", f.ID)
	}
	return nil
}

// inBounds holds the counts against the definition's minInstanceCount and maxInstanceCount.
func inBounds(app appdef.App, want map[string]int) error {
	if len(app.Components) == 0 {
		return exit.With(exit.Registry, errors.New("flex: the registry's definition of the app cannot be read"))
	}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(want)) {
		c := app.Component(name)
		if c == nil {
			return exit.Usagef("flex: no component %s; there are %s", name, strings.Join(app.ComponentNames(), ", "))
		}
		switch n := want[name]; {
		case n < c.MinInstances:
			errs = append(errs, fmt.Errorf("flex: %s: got %d, want at least minInstanceCount, which is %d", name, n,
				c.MinInstances))
		case c.MaxInstances >= 0 && n > c.MaxInstances:
			errs = append(errs, fmt.Errorf("flex: %s: got %d, want at most maxInstanceCount, which is %d", name, n,
				c.MaxInstances))
		}
	}
	if len(errs) > 0 {
		return exit.With(exit.Definition, errors.Join(errs...))
	}
	return nil
}

// leavesNobody tells that the gang would have no members but services: it could neither end nor grow again.
func leavesNobody(app appdef.App, d registry.Directive, want map[string]int) bool {
	members, left := false, 0
	for _, c := range app.Components {
		if c.Settings.Role == appdef.RoleService {
			continue
		}
		n, wanted := want[c.Name]
		if !wanted {
			n = d.Counts[c.Name]
		}
		members, left = members || d.Counts[c.Name] > 0, left+n
	}
	return members && left == 0
}

// flexing is one change of counts on its way.
type flexing struct {
	streams console.Streams
	lookup  apps.Lookup
	app     string
	address registry.Address
	run     string
	want    map[string]int
	before  map[string]int // counts when it began

	told  string // what a person was told last
	taken bool   // the gang is, or was, on its way to these counts
}

// asked tells that the gang has these counts, or is on its way to them.
func (x *flexing) asked(d registry.Directive) bool {
	have := d.Counts
	if d.Target != nil {
		have = d.Target
	}
	return x.meets(have)
}

func (x *flexing) meets(have map[string]int) bool {
	for name, n := range x.want {
		if have[name] != n {
			return false
		}
	}
	return true
}

func (x *flexing) ask(ctx context.Context) error {
	a := registry.Ask{Kind: registry.AskFlex, By: cmp.Or(x.lookup.Who, apps.Asker()), Args: map[string]string{}}
	for name, n := range x.want {
		a.Args[name] = strconv.Itoa(n)
	}
	return x.lookup.Ask(ctx, x.address, x.app, a)
}

// await waits until the counts are in force and says who is missing.
func (x *flexing) await(ctx context.Context, limit time.Duration) (registry.Directive, error) {
	waiting, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var last registry.Directive
	var over error
	done := wait.Until(waiting, func() bool {
		st, err := x.lookup.Status(ctx, x.address, x.app)
		switch {
		case errors.Is(err, registry.ErrUnreachable) && x.lookup.SocketGone(ctx, x.address):
			over = x.ended()
			return true
		case errors.Is(err, registry.ErrUnreachable): // it is waited for
			return false
		case err != nil:
			over = apps.RegistryError(x.address, err)
			return true
		}
		last = st.Directive
		inForce := last.Run == x.run && last.Target == nil && x.meets(last.Counts)
		switch {
		case inForce:
			return true
		case last.Verdict != nil || last.Run != x.run:
			over = x.ended()
			return true
		case last.Target != nil && x.meets(last.Target):
			x.taken = true
		case x.taken && last.Target == nil:
			if over = fmt.Errorf("%s: %s", x.app, last.Why); !x.failed(st) {
				over = exit.With(exit.Timeout, over)
			}
			return true
		}
		x.tell(st)
		return false
	})
	switch {
	case over != nil:
		return last, over
	case done:
		return last, nil
	case ctx.Err() != nil:
		return last, ctx.Err()
	}
	why := x.told
	if why == "" {
		why = "its conductor has not taken it up"
	}
	return last, exit.With(exit.Timeout, fmt.Errorf("%s: the counts are not in force after %s: %s; the request "+
		"stands while agents of the run live",
		x.app, limit, why))
}

// failed tells that the flex was given up because a newcomer has failed, not for the time that it took.
func (x *flexing) failed(st consul.Status) bool {
	return slices.ContainsFunc(st.Members, func(m consul.MemberStatus) bool {
		return m.Phase == registry.PhaseFailed && m.Instance.Index >= st.Directive.Counts[m.Instance.Component] &&
			m.Instance.Index < x.want[m.Instance.Component]
	})
}

func (x *flexing) ended() error {
	return fmt.Errorf("%s: its run ended before the counts were in force", x.app)
}

// tell names who has to leave, and to join, before the gang can change, when that is different now.
func (x *flexing) tell(st consul.Status) {
	absent, staging := newcomers(st)
	var parts []string
	if names := leaving(st); len(names) > 0 && !x.taken {
		parts = append(parts, strings.Join(names, ", ")+", which an earlier flex removed, to be gone")
	}
	if len(absent) > 0 {
		it, agents := "it", "its agent"
		if len(absent) > 1 {
			it, agents = "them", "their agents"
		}
		parts = append(parts, fmt.Sprintf("%s (muster run starts %s; elsewhere start %s)", strings.Join(absent, ", "),
			it, agents))
	}
	if len(staging) > 0 {
		parts = append(parts, strings.Join(staging, ", ")+" to be staged")
	}
	if len(parts) == 0 {
		return
	}
	if text := "waiting for " + strings.Join(parts, "; "); text != x.told {
		x.told = text
		fmt.Fprintf(x.streams.Err, "%s: %s\n", x.app, text)
	}
}

// leaving are the instances that a flex has removed and whose processes may still run.
func leaving(st consul.Status) []string {
	var names []string
	for _, m := range st.Members {
		may := m.Live || m.Phase == registry.PhaseReady || m.Phase == registry.PhaseJoined
		if st.Directive.Drops(m.Instance) && may {
			names = append(names, m.Instance.String())
		}
	}
	return names
}

// newcomers are the instances of a flex up that are not there yet, and those that are.
func newcomers(st consul.Status) (absent, staging []string) {
	d := st.Directive
	for _, name := range slices.Sorted(maps.Keys(d.Target)) {
		for i := d.Counts[name]; i < d.Target[name]; i++ {
			in := registry.Instance{Component: name, Index: i}
			here := slices.ContainsFunc(st.Members, func(m consul.MemberStatus) bool {
				return m.Instance == in && m.Live
			})
			if here {
				staging = append(staging, in.String())
			} else {
				absent = append(absent, in.String())
			}
		}
	}
	return absent, staging
}

// flexReport is what `flex --json` prints.
type flexReport struct {
	Version    int            `json:"version"`
	App        string         `json:"app"`
	Before     map[string]int `json:"before"`
	Counts     map[string]int `json:"counts"`
	Generation int            `json:"generation"`
}

func (x *flexing) print(d registry.Directive, asJSON bool) error {
	if asJSON {
		return console.PrintJSON(x.streams.Out, flexReport{
			Version: 1, App: x.app, Before: x.before, Counts: d.Counts,
			Generation: d.Gen,
		})
	}
	fmt.Fprintf(x.streams.Out, "%s: %s, in generation %d\n", x.app, changesText(x.before, d.Counts), d.Gen)
	return nil
}
