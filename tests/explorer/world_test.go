package explorer

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/registry/conductor"
	"github.com/muster-agent/muster/shim/machine"
)

var t0 = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// times are shorter than the defaults where the protocol allows it, and keep its inequalities.
func times() registry.Times {
	return registry.Times{
		TTL: 2 * time.Second, Renew: 600 * time.Millisecond, Request: 300 * time.Millisecond,
		Lost: 45 * time.Second, LostMass: 70 * time.Second, Barrier: 150 * time.Second, Wait: time.Minute,
	}
}

// faults is how often the environment may still do each of these.
type faults struct {
	Die     int `json:",omitzero"` // an agent dies with its process
	Orphan  int `json:",omitzero"` // an agent dies, its process does not
	Host    int `json:",omitzero"` // a host dies and boots again
	Cut     int `json:",omitzero"` // a host loses all its connections
	Outage  int `json:",omitzero"` // the registry answers nobody
	Fail    int `json:",omitzero"` // a process ends with 1
	Stage   int `json:",omitzero"` // staging fails
	Unknown int `json:",omitzero"` // the answer to a transaction is lost
	Early   int `json:",omitzero"` // a session ends early
	Term    int `json:",omitzero"` // the launcher ends an agent
	Dup     int `json:",omitzero"` // the launcher starts a second agent of an index
	Delay   int `json:",omitzero"` // something happens out of turn (see choices)
	Wait    int `json:",omitzero"` // the clock moves although a launcher, a process or the network has something to do
	Stop    int `json:",omitzero"` // the user stops the run
	Up      int `json:",omitzero"` // the user asks for one more
	Down    int `json:",omitzero"` // the user asks for one less
	Save    int `json:",omitzero"` // the user asks for a save
	Gone    int `json:",omitzero"` // the operator declares a dead member gone
	Wipe    int `json:",omitzero"` // the registry's keys are deleted
	Restore int `json:",omitzero"` // the registry goes back to an older copy
	Late    int `json:",omitzero"` // an agent of an old run comes
	Adopt   int `json:",omitzero"` // the operator lets a member write the app's data again
	Slow    int `json:",omitzero"` // a request arrives after its sender has given it up
}

// setting is what is explored.
type setting struct {
	Workers  int               `json:",omitzero"`
	PS       int               `json:",omitzero"` // a component of gang scope beside workers of instance scope
	Services int               `json:",omitzero"`
	Scope    string            `json:",omitzero"`
	Agents   int               `json:",omitzero"` // launched in all
	Hosts    int               `json:",omitzero"`
	Budget   int               `json:",omitzero"`
	Retry    int               `json:",omitzero"`
	Enough   int               `json:",omitzero"` // so many that have ended are a success
	Runs     int               `json:",omitzero"` // how many runs may follow each other
	Shell    bool              `json:",omitzero"`
	Saves    bool              `json:",omitzero"` // the workers have outputs to save
	Ordered  bool              `json:",omitzero"` // workers start after ps
	InPlace  bool              `json:",omitzero"` // a flex of the workers starts and stops the difference
	Faults   faults            `json:",omitzero"`
	shapes   map[string]string // of the transactions that were sent → their names
	Without  rule              `json:",omitzero"` // the rule that is taken away
	And      rule              `json:",omitzero"` // another one, which would cover the first
}

// world is a state of everything. It is a value: clone copies what may change.
type world struct {
	S      *setting
	Facts  *[]conductor.Facts // by run
	Now    time.Time
	KV     store
	Agents []agent
	Boots  []int  // of each host
	Cuts   []bool // of each host
	Out    bool   // the registry answers nobody
	Left   faults
	Backup *store
	Asked  int
	Truth  truth
	Bad    string    // the invariant that is broken
	Fair   bool      // faults have stopped
	Calm   time.Time // when they have
	Free   bool      // every order is allowed: a walk, or a replay
	Late   []string  // threads that wait until no other has work
	Flight []request // sent, given up, and still under way
	Meets  int       // transactions of the rule that is taken away
	Apart  int       // those that do something else without it
}

// request is a transaction on its way.
type request struct {
	Agent int
	Name  string
	Ops   []op
}

// The lives of an agent.
const (
	alive = iota + 1
	dead
)

// agent is one agent process.
type agent struct {
	Inc     string
	Host    int
	In      registry.Instance
	Run     int
	Life    int
	M       machine.State
	Proc    process
	Timers  []armed
	Engine  []machine.Effect
	Gang    *gangEffect
	Fence   conductor.Contact
	Joining joining
	Member  membership
	Watch   watch
	Tenure  *tenure
	Row     *registry.Roster // that was read last
	Machine registry.Process
	Over    bool          // it ended by itself
	Port    int           // that it has bound
	Mine    time.Duration // when the registry last said that the index is its
}

// process is the process of an agent; it may outlive it.
type process struct {
	Live  bool
	Gen   int
	Asked bool          // to stop
	End   time.Duration // of the guard's dead-man timer
	Ended bool          // with 0, and the agent has lived to know
	EndOf int           // the generation of that end
}

type armed struct {
	At time.Time
	E  machine.Event
}

// gangEffect is an effect of the gang that is under way.
type gangEffect struct {
	E     machine.Effect
	S     machine.State
	Step  int
	Since time.Time
	Sent  []registry.Member
}

// watch is what an agent knows of the directive.
type watch struct {
	On      bool // it watches
	Known   bool
	D       registry.Directive
	Index   uint64
	Session string
	Lost    string
	Came    time.Time
}

// String is the setting on one line, without what it has none of.
func (s *setting) String() string {
	text, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(text)
}

func (s *setting) world() *world {
	w := &world{S: s, Now: t0, KV: newStore(), Left: s.Faults, Truth: newTruth()}
	all := make([]conductor.Facts, max(1, s.Runs))
	for i := range all {
		all[i] = s.facts(runName(i + 1))
	}
	w.Facts = &all
	w.Boots, w.Cuts = make([]int, max(1, s.Hosts)), make([]bool, max(1, s.Hosts))
	return w
}

func runName(n int) string { return strconv.Itoa(n) }

func (s *setting) facts(run string) conductor.Facts {
	one := 1
	var all []conductor.ComponentFacts
	add := func(name string, n int, scope string) *conductor.ComponentFacts {
		all = append(all, conductor.ComponentFacts{
			Name: name, Role: "worker", Count: n, Scope: scope, Waited: true, Ends: true, Fails: true, MinFailed: &one,
			Budget: s.rule(),
		})
		return &all[len(all)-1]
	}
	if s.PS > 0 {
		add("ps", s.PS, registry.ScopeGang)
	}
	c := add("w", s.Workers, s.Scope)
	c.InPlace, c.Moves = s.InPlace, s.InPlace
	c.Saves = s.Saves
	if s.Ordered {
		c.After = []conductor.Requirement{{Component: "ps", State: conductor.OrderStarted}}
	}
	if s.Services > 0 {
		c := add("s", s.Services, registry.ScopeInstance)
		c.Role, c.Waited, c.Ends, c.Fails, c.MinFailed = "service", false, false, false, nil
	}
	return conductor.Facts{
		App: "app", Run: run, Digest: "d", Components: all, Times: times(), Barrier: times().Barrier,
		GangBudget: s.rule(), Retry: s.Retry, Total: conductor.TotalFacts{MinSucceeded: s.Enough},
	}
}

func (s *setting) rule() conductor.BudgetRule {
	return conductor.BudgetRule{Max: s.Budget, Backoff: conductor.Backoff{Min: time.Second, Max: time.Second}}
}

func (w *world) clone() *world {
	n := *w
	n.KV = w.KV.clone()
	n.Agents = slices.Clone(w.Agents)
	n.Flight = slices.Clone(w.Flight)
	n.Boots, n.Cuts = slices.Clone(w.Boots), slices.Clone(w.Cuts)
	for i := range n.Agents {
		a := &n.Agents[i]
		a.Timers, a.Engine = slices.Clone(a.Timers), slices.Clone(a.Engine)
		if a.Gang != nil {
			g := *a.Gang
			a.Gang = &g
		}
		if a.Tenure != nil {
			t := *a.Tenure
			t.Effects = slices.Clone(t.Effects)
			a.Tenure = &t
		}
	}
	return &n
}

func (w *world) facts(a *agent) conductor.Facts { return (*w.Facts)[a.Run-1] }

func (w *world) component(a *agent) conductor.ComponentFacts {
	for _, c := range w.facts(a).Components {
		if c.Name == a.In.Component {
			return c
		}
	}
	return conductor.ComponentFacts{Name: a.In.Component, Scope: registry.ScopeGang, Waited: true}
}

func (w *world) connected(a *agent) bool { return a.Life == alive && !w.Cuts[a.Host] && !w.Out }

// moment is the time on the clock of all hosts.
func (w *world) moment() time.Duration { return w.Now.Sub(t0) + time.Hour }

// launch starts an agent of an index.
func (w *world) launch(in registry.Instance, host, run int) {
	n := len(w.Agents)
	inc := string(rune('a' + n))
	w.Agents = append(w.Agents, agent{
		Inc: inc, Host: host, In: in, Run: run, Life: alive, M: machine.New(),
		Machine: registry.Process{
			Machine: hostName(host), Boot: fmt.Sprintf("boot-%s-%d", hostName(host), w.Boots[host]), PidNS: "n", Pid: n + 1, Start: 1,
		},
	})
	w.tell(n, machine.Event{Kind: "boot"})
}

func hostName(h int) string { return "host" + string(rune('A'+h)) }

// tell hands the machine an event and queues its effects, as its loop does.
func (w *world) tell(i int, e machine.Event) {
	a := &w.Agents[i]
	if a.Life != alive {
		return
	}
	if e.At.IsZero() {
		e.At = w.Now
	}
	if e.Kind == machine.Gone {
		e.Roll = 0.5
	}
	var effects []machine.Effect
	a.M, effects = machine.Step(a.M, e)
	for _, f := range effects {
		switch f.Kind.Room() {
		case "gang":
			a.Gang = &gangEffect{E: f, S: a.M, Since: w.Now} // a newer one cancels the one under way
		case "stager", "engine":
			a.Engine = append(a.Engine, f)
		case "loop":
			a.Timers = append(a.Timers, armed{w.Now.Add(f.After), machine.Event{Kind: "timer", Attempt: f.Attempt, Timer: f.Timer}})
		}
	}
	if a.M.Phase.Final() {
		w.exits(i)
	}
}

// exits ends an agent that has nothing more to do.
func (w *world) exits(i int) {
	a := &w.Agents[i]
	w.checkExit(a)
	w.die(i)
	a.Over = true
}

// die ends an agent with its process; its sessions stay until they expire.
func (w *world) die(i int) {
	a := &w.Agents[i]
	a.Life, a.Proc.Live = dead, false
	a.Timers, a.Engine, a.Gang, a.Tenure = nil, nil, nil, nil
	a.Joining, a.Watch, a.Row = joining{}, watch{}, nil
	a.Member = membership{}
	m := machine.New()
	m.Phase = machine.Done
	a.M = m
	for id, l := range w.KV.Sessions {
		if l.Owner == i {
			l.Left = true
			w.KV.Sessions[id] = l
		}
	}
}

// session makes a session of an agent, with a name that nobody remembers: names are few, and states as well.
func (w *world) session(i int, kind string, deletes bool) string {
	used := map[string]bool{}
	for id := range w.KV.Sessions {
		used[id] = true
	}
	for _, e := range w.KV.Keys {
		used[e.Session] = true
	}
	for _, a := range w.Agents {
		used[a.Watch.Session], used[a.Member.Session], used[a.Member.Candidate], used[a.Joining.Session] = true, true, true, true
		used[a.Joining.Look.LiveSession], used[a.Joining.Look.DirectiveSession], used[a.Joining.Lock] = true, true, true
		if a.Tenure != nil {
			used[a.Tenure.Session] = true
		}
	}
	if w.Backup != nil {
		for id := range w.Backup.Sessions {
			used[id] = true
		}
	}
	for n := 1; ; n++ {
		id := fmt.Sprintf("%s-%s-%d", kind, w.Agents[i].Inc, n)
		if !used[id] {
			w.KV.Sessions[id] = lease{Owner: i, Deletes: deletes, Heard: w.Now}
			return id
		}
	}
}

// policy is what the plan says of a component, for the machine.
func (w *world) policy(a *agent) *machine.Policy {
	c := w.component(a)
	return &machine.Policy{
		Scope: c.Scope, Service: !c.Waited, Ordered: w.facts(a).Awaited(c.Name), Follows: len(c.After) > 0,
		Rule: c.Budget, Grace: 5 * time.Second, Barrier: times().Barrier,
	}
}
