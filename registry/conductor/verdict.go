package conductor

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/muster-agent/muster/registry"
)

// failed ends the run when a component, or the app as a whole, has as many failures for good as it may have.
func (r *ruling) failed() bool {
	fatal, many := r.fatal()
	if len(fatal) == 0 {
		return false
	}
	sortFirst(fatal)
	f := fatal[0]
	if many == "" {
		if k := r.fallen(f.Component); k > 1 {
			many = fmt.Sprintf("; %d instances of %s have failed", k, f.Component)
		}
	}
	class := verdictClass(f.class)
	return r.conclude(registry.Verdict{
		Outcome: registry.Failed, Class: class, Cause: f.sentence() + many, First: f.Instance.String(), Exit: f.exit,
		Advice: advice(class, r.c.Facts.App, f.Instance, f.exit), Retry: class == registry.ClassHost || class == registry.ClassGPU || class == registry.ClassPreempted,
	})
}

// fatal are the failures that are too many, by their component's count or else by that of the whole app; many
// says so of the latter.
func (r *ruling) fatal() (fatal []failure, many string) {
	for _, f := range r.failures {
		if f.facts.Fails && f.facts.MinFailed != nil && r.fallen(f.Component) >= max(1, *f.facts.MinFailed) {
			fatal = append(fatal, f)
		}
	}
	if len(fatal) > 0 {
		return fatal, ""
	}
	for _, f := range r.failures {
		if f.facts.Fails {
			fatal = append(fatal, f)
		}
	}
	all, _ := r.total()
	if limit := r.c.Facts.Total.failures(all); limit == 0 || len(fatal) < limit {
		return nil, ""
	}
	return fatal, fmt.Sprintf("; %d of %d instances have failed", len(fatal), all)
}

// fallen is how many instances of a component have failed for good.
func (r *ruling) fallen(component string) (n int) {
	for _, f := range r.failures {
		if f.Component == component {
			n++
		}
	}
	return n
}

// total is how many instances count for the app as a whole, and how many of them have ended with 0.
func (r *ruling) total() (all, ended int) {
	for i, f := range r.c.Facts.Components {
		if f.Fails {
			all, ended = all+r.c.Facts.count(r.d, i), ended+r.ended[f.Name]
		}
	}
	return all, ended
}

// failures is how many of all instances fail the app; 0: no number does.
func (t TotalFacts) failures(all int) int {
	if t.FailedShare <= 0 {
		return t.MinFailed
	}
	const dust = 1e-9 // 0.1 × 30 is a little more than 3
	share := max(1, int(math.Ceil(t.FailedShare*float64(all)-dust)))
	if t.MinFailed <= 0 {
		return share
	}
	return min(share, t.MinFailed)
}

// succeeded ends the run when enough instances have ended with 0, or when all have ended whose end
// ends the app.
func (r *ruling) succeeded() bool {
	enders, over := 0, 0
	var names []string
	anyEnds := r.anyEnds()
	for i, f := range r.c.Facts.Components {
		if !f.Waited {
			continue
		}
		n := r.ended[f.Name]
		if f.MinSucceeded != nil && *f.MinSucceeded > 0 && n >= *f.MinSucceeded {
			return r.success(fmt.Sprintf("%d %s ended with 0, %d were asked for", n, f.Name, *f.MinSucceeded))
		}
		if f.Ends || !anyEnds {
			enders += r.c.Facts.count(r.d, i)
			over += r.done[f.Name]
			names = append(names, f.Name)
		}
	}
	if k := r.c.Facts.Total.MinSucceeded; k > 0 {
		if _, n := r.total(); n >= k {
			return r.success(fmt.Sprintf("%d of %d instances asked for have ended with 0", n, k))
		}
	}
	if enders == 0 || over < enders {
		return false
	}
	return r.success(fmt.Sprintf("all %d instances of %s are done", enders, strings.Join(names, ", ")))
}

// success names those who failed on the way: a partial success is none that may go unseen.
func (r *ruling) success(cause string) bool {
	return r.conclude(registry.Verdict{Outcome: registry.Succeeded, Cause: cause + r.casualties()})
}

const namedCasualties = 3 // how many failed instances a success names

func (r *ruling) casualties() string {
	if len(r.failures) == 0 {
		return ""
	}
	list := slices.Clone(r.failures)
	sortFirst(list)
	var names []string
	for _, f := range list[:min(len(list), namedCasualties)] {
		names = append(names, fmt.Sprintf("%s (%s)", f.Instance, strings.TrimPrefix(f.happened(), f.String()+" ")))
	}
	if more := len(list) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	return registry.CasualtiesMark + strings.Join(names, ", ")
}

// anyEnds tells whether the app has a chief or a worker; without one, all are waited for to end.
func (r *ruling) anyEnds() bool {
	for i, f := range r.c.Facts.Components {
		if f.Waited && f.Ends && r.c.Facts.count(r.d, i) > 0 {
			return true
		}
	}
	return false
}

func (r *ruling) end(v registry.Verdict) End { return ending(r.c, r.now, r.v, v) }

// ending is T12.
func ending(c State, now time.Time, view View, v registry.Verdict) End {
	n := nextDirective(c, view.Directive, now)
	v.Version, v.Run, v.Gen, v.At = 1, n.Run, n.Gen, wall(now)
	n.Act, n.Verdict, n.Why, n.First, n.Target, n.Keep = registry.ActStop, &v, v.Cause, v.First, nil, 0
	if n.StopGrace = c.Facts.StopGrace.Seconds(); v.Outcome == registry.Stopped {
		n.StopGrace = cmp.Or(askedGrace(view.Asks), n.StopGrace)
	}
	return End{Index: view.DirectiveIndex, Directive: n, Verdict: v, Asks: view.Asks}
}

func stopped(c State, now time.Time, view View, a registry.Ask) End {
	cause := "stopped"
	if who := a.Args["who"]; who != "" {
		cause += " by " + who
	}
	return ending(c, now, view, registry.Verdict{Outcome: registry.Stopped, Class: registry.ClassStopped, Cause: cause, By: a.By})
}

// noGrace is how a directive says zero: there 0 means each instance's own grace.
const noGrace = 0.001

// askedGrace is the grace in seconds that a stop asks for; 0: none was named.
func askedGrace(asks []registry.Ask) float64 {
	for _, a := range asks {
		if g, err := strconv.ParseFloat(a.Args["grace"], 64); a.Kind == registry.AskStop && err == nil && g >= 0 {
			return max(g, noGrace)
		}
	}
	return 0
}

// sentence says what happened: instance, exit, attempts.
func (f failure) sentence() string {
	s := f.what
	if s == "" {
		s = f.happened()
	}
	if f.budget.Used > 0 && !f.free {
		s += fmt.Sprintf(" after %d restart%s", f.budget.Used, plural(f.budget.Used))
		if f.rule.Window > 0 {
			s += " in " + seconds(f.rule.Window)
		}
	}
	if f.exit != nil && f.exit.Why != "" && (f.exit.Code != nil || f.exit.Signal != 0) {
		s += ": " + f.exit.Why
	}
	return s
}

func (f failure) happened() string {
	e := f.exit
	switch {
	case e == nil && f.rec.Phase == registry.PhaseLeft:
		return f.Instance.String() + " left"
	case e == nil:
		return fmt.Sprintf("%s was lost with its agent on %s", f.Instance, place(f.rec.Member))
	case e.Class == registry.ClassOOM:
		return f.Instance.String() + " ran out of memory"
	case e.Signal != 0:
		return fmt.Sprintf("%s was killed by %s", f.Instance, signalName(e.Signal))
	case e.Code != nil:
		return fmt.Sprintf("%s exited with %d", f.Instance, *e.Code)
	case e.Why != "":
		return fmt.Sprintf("%s failed: %s", f.Instance, e.Why)
	}
	return fmt.Sprintf("%s failed (%s)", f.Instance, f.class)
}

// advice is one line on what to do about a class of failure. exit is how the first process ended, if it did.
func advice(c registry.Class, app string, first registry.Instance, exit *registry.MemberExit) string {
	switch c {
	case registry.ClassOOM:
		return fmt.Sprintf("raise yarn.memory of %s, let it grow with muster.memory.autoscale, or make the program use less", first.Component)
	case registry.ClassHost, registry.ClassPreempted:
		return "launch the app again: it goes on from its checkpoint"
	case registry.ClassGPU:
		return "launch the app again, on another host if the device stays faulty"
	case registry.ClassNetwork:
		if exit != nil && exit.Code == nil && exit.Signal == 0 { // it could not even have its ports
			return "widen --ports (or slider.allowed.ports, where it is set) or free some of them"
		}
		return "check that the addresses named in the log are reachable from that host"
	case registry.ClassData:
		return "check that the input or output named in the log is there and may be read or written"
	case registry.ClassImage:
		return "check the image's name and credentials"
	case registry.ClassDefinition:
		if exit != nil && exit.Why != "" {
			return "" // it names what is wrong, which validate may be unable to see: folders, files
		}
		return "muster validate names what is wrong with the definition"
	case registry.ClassNotPermitted:
		return "muster doctor says what this host permits, and what would change it"
	case registry.ClassMuster:
		return fmt.Sprintf("please report it with agent.log of %s", first)
	case registry.ClassApp, registry.ClassTimeout:
		if exit != nil && exit.Why != "" {
			return "" // the cause says it, and where the rest stands
		}
	case registry.ClassNone, registry.ClassStopped:
	case registry.ClassLauncher, registry.ClassRegistry, registry.ClassFlex, registry.ClassMismatch: // they decide no verdict
	}
	found := ""
	if exit != nil && exit.Code != nil && *exit.Code == notFound {
		found = "a command or a shared library was not found: "
	}
	return fmt.Sprintf("%ssee, on its host, muster logs %s/%s --stderr --tail 20", found, app, first)
}

// notFound is what a shell ends with that does not find a command (POSIX.1-2017, XCU 2.8.2), and glibc's loader without a library.
const notFound = 127

func plural(n int) string {
	if n == 1 {
		return ""
	}
	return "s"
}

// seconds prints a duration as users write it in the definition.
func seconds(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'g', -1, 64) + " s" }

// signalName is the Linux name of the signals that end processes.
func signalName(n int) string {
	switch n {
	case 1:
		return "SIGHUP"
	case 2:
		return "SIGINT"
	case 3:
		return "SIGQUIT"
	case 4:
		return "SIGILL"
	case 6:
		return "SIGABRT"
	case 7:
		return "SIGBUS"
	case 8:
		return "SIGFPE"
	case 9:
		return "SIGKILL"
	case 11:
		return "SIGSEGV"
	case 13:
		return "SIGPIPE"
	case 15:
		return "SIGTERM"
	}
	return "signal " + strconv.Itoa(n)
}
