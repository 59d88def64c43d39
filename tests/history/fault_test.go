package history

import (
	"bytes"
	"context"
	"fmt"
	dice "math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/muster-agent/muster/tests/servers/consulserver"
)

// mending ends a fault, at its time.
type mending struct {
	at      time.Time
	network bool // as long as it is to come, neither network nor servers have another fault
	do      func()
}

// maker makes a fault: it says what it did, and returns what ends it, if anything. Nothing said: nobody was there to be
// hit.
type maker struct {
	weight int
	make   func(w *world, ctx context.Context) (what string, later *mending)
}

// makers are the kinds of faults. "cut" is no event: half of the proxies cut reads all the time.
var makers = map[string]maker{
	"agent":   {6, (*world).killAgent},
	"guard":   {4, (*world).killAgentAndGuard},
	"tree":    {4, (*world).killTree},
	"process": {6, (*world).killProcess},
	"term":    {4, (*world).termAgent},
	"pause":   {2, (*world).pauseAgent},
	"leader":  {2, (*world).killLeader},
	"servers": {3, (*world).partServers},
	"host":    {3, (*world).cutHost},
	"blind":   {3, (*world).blindHost},
	"late":    {2, (*world).lateAgent},
	"second":  {2, (*world).secondAgent},
	"stop":    {1, (*world).askStop},
	"clock":   {2, (*world).stepClock},
	"delete":  {1, (*world).deleteApp},
	"restore": {4, (*world).restoreSnapshot},
}

// network are the kinds of which there is one at a time: a majority of servers is always to come back.
var network = map[string]bool{"leader": true, "servers": true, "host": true, "blind": true, "restore": true}

// schedule makes faults for as long as the test wishes, and mends all of them.
func (w *world) schedule(ctx context.Context) {
	var kinds []string
	for _, name := range w.o.faults {
		for range makers[name].weight {
			kinds = append(kinds, name)
		}
	}
	over := time.Now().Add(w.o.length)
	for time.Now().Before(over) {
		pause(ctx, w.o.pace/2+time.Duration(w.dice.Int64N(int64(w.o.pace))))
		w.mend()
		if len(kinds) == 0 {
			continue
		}
		kind := kinds[w.dice.IntN(len(kinds))]
		if network[kind] && slices.ContainsFunc(w.pending, func(m mending) bool { return m.network }) {
			continue
		}
		what, later := makers[kind].make(w, ctx)
		if what == "" {
			continue
		}
		w.note(event{Kind: fault, Why: what})
		if later != nil {
			later.network = network[kind]
			w.pending = append(w.pending, *later)
		}
	}
	for len(w.pending) > 0 && ctx.Err() == nil {
		pause(ctx, 100*time.Millisecond)
		w.mend()
	}
	w.operators.Wait()
}

// mend ends the faults whose time has come. What is done then may have an end of its own.
func (w *world) mend() {
	all := w.pending
	w.pending = nil
	for _, m := range all {
		if time.Now().After(m.at) {
			m.do()
		} else {
			w.pending = append(w.pending, m)
		}
	}
}

// later is the end of a fault that lasts for a while.
func (w *world) later(do func()) *mending {
	const least = 3 * time.Second
	return &mending{at: time.Now().Add(least + time.Duration(w.dice.Int64N(int64(w.o.away)))), do: do}
}

// anAgent is some agent that runs; nil if none does.
func (w *world) anAgent() *agent {
	var all []*agent
	for _, g := range w.gangs {
		all = append(all, g.current()...)
	}
	if len(all) == 0 {
		return nil
	}
	return all[w.dice.IntN(len(all))]
}

// children are the processes that a process has started and that were not given to another.
func children(pid int) (all []int) {
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid)) // only a bad pattern is an error
	for _, list := range lists {
		text, _ := os.ReadFile(list) // it may have ended
		for field := range strings.FieldsSeq(string(text)) {
			if n, err := strconv.Atoi(field); err == nil {
				all = append(all, n)
			}
		}
	}
	return all
}

func descendants(pid int) (all []int) {
	for _, c := range children(pid) {
		all = append(append(all, c), descendants(c)...)
	}
	return all
}

func (w *world) killAgent(context.Context) (string, *mending) {
	a := w.anAgent()
	if a == nil {
		return "", nil
	}
	_ = a.process.Signal(syscall.SIGKILL) // it may have ended, as below
	return "kills of an agent", nil
}

func (w *world) killAgentAndGuard(context.Context) (string, *mending) {
	a := w.anAgent()
	if a == nil {
		return "", nil
	}
	guards := children(a.pid)
	_ = a.process.Signal(syscall.SIGKILL)
	for _, pid := range guards {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	return "kills of an agent and its guard", nil
}

func (w *world) killTree(context.Context) (string, *mending) {
	a := w.anAgent()
	if a == nil {
		return "", nil
	}
	all := descendants(a.pid)
	_ = a.process.Signal(syscall.SIGKILL)
	for _, pid := range all {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	return "kills of an agent with all below it", nil
}

func (w *world) killProcess(context.Context) (string, *mending) {
	all := w.observer.processes()
	if len(all) == 0 {
		return "", nil
	}
	all[w.dice.IntN(len(all))].kill(syscall.SIGKILL)
	return "kills of a process", nil
}

func (w *world) termAgent(context.Context) (string, *mending) {
	a := w.anAgent()
	if a == nil {
		return "", nil
	}
	_ = a.process.Signal(syscall.SIGTERM)
	return "TERM to an agent", nil
}

func (w *world) pauseAgent(context.Context) (string, *mending) {
	a := w.anAgent()
	if a == nil {
		return "", nil
	}
	_ = a.process.Signal(syscall.SIGSTOP)
	return "agents stalled", w.later(func() { _ = a.process.Signal(syscall.SIGCONT) })
}

// leader is the server that leads now; nil if none says so.
func (w *world) leader(ctx context.Context) *consulserver.Server {
	for _, s := range w.servers {
		if s.Leads(ctx) {
			return s
		}
	}
	return nil
}

func (w *world) killLeader(ctx context.Context) (string, *mending) {
	s := w.leader(ctx)
	if s == nil {
		return "", nil
	}
	s.Kill()
	return "kills of Consul's leader", w.later(s.Restart)
}

// partServers parts one server from the others; hosts reach all of them.
func (w *world) partServers(context.Context) (string, *mending) {
	one := w.dice.IntN(serverCount)
	both := func(do func(i, j int)) func() {
		return func() {
			for other := range serverCount {
				if other != one {
					do(one, other)
					do(other, one)
				}
			}
		}
	}
	both(w.net.Block)()
	return "partitions between servers", w.later(both(w.net.Unblock))
}

func (w *world) aHost() int { return w.hosts[w.dice.IntN(len(w.hosts))] }

func (w *world) cutHost(context.Context) (string, *mending) {
	host := w.aHost()
	w.net.Cut(host)
	return "hosts cut off from all", w.later(func() { w.net.Heal(host) })
}

// blindHost cuts a host off from the servers alone: it loses what it sends to them, or they what they send to it.
func (w *world) blindHost(context.Context) (string, *mending) {
	host, away := w.aHost(), w.dice.IntN(2) == 0
	each := func(do func(i, j int)) func() {
		return func() {
			for s := range serverCount {
				if away {
					do(host, s)
				} else {
					do(s, host)
				}
			}
		}
	}
	each(w.net.Block)()
	return "hosts cut off from the servers", w.later(each(w.net.Unblock))
}

func (w *world) aGang() *gang { return w.gangs[w.dice.IntN(len(w.gangs))] }

// lateAgent starts an agent of a run that has ended, as a host does that was off. It is gone soon.
func (w *world) lateAgent(ctx context.Context) (string, *mending) {
	g := w.aGang()
	runs := w.reader.finished(g.app)
	if len(runs) == 0 {
		return "", nil
	}
	return "agents of finished runs", w.extra(ctx, g, runs[w.dice.IntN(len(runs))])
}

// secondAgent starts a second agent of an index, as a launcher does that takes the first for dead.
func (w *world) secondAgent(ctx context.Context) (string, *mending) {
	g := w.aGang()
	g.mu.Lock()
	run := g.run
	g.mu.Unlock()
	if run == "" {
		return "", nil
	}
	return "second agents of one index", w.extra(ctx, g, run)
}

// extra is an agent beside those of the launcher. It is ended after a while.
func (w *world) extra(ctx context.Context, g *gang, run string) *mending {
	host := w.aHost()
	a, err := g.start(run, w.dice.IntN(g.size), host)
	if err != nil {
		w.fail(err)
		return nil
	}
	until, end := context.WithCancel(ctx)
	var waits sync.WaitGroup
	waits.Go(func() {
		w.note(event{
			Kind: agentEnds, App: g.app, Run: run, Instance: a.instance.String(), Host: w.net.Addr(host), Pid: a.pid,
			Code: a.wait(until),
		})
	})
	return w.later(func() {
		end()
		waits.Wait()
	})
}

// askStop is a user who stops a run.
func (w *world) askStop(ctx context.Context) (string, *mending) {
	g, host := w.aGang(), w.aHost()
	var asks sync.WaitGroup
	asks.Go(func() {
		_, err := w.verb(ctx, host, "stop", g.app, "--registry", "consul://"+proxyAddress, "--state-dir", w.on(host, "s"))
		result := "well"
		if err != nil { // nothing may be there to stop, or the host is cut off
			result = "with " + err.Error()
		}
		w.note(event{Kind: notice, App: g.app, Why: "muster stop ended " + result})
	})
	return "runs stopped by a user", w.later(asks.Wait)
}

// stepClock sets the wall clock of a host that has one of its own: up to an hour ahead or behind.
func (w *world) stepClock(context.Context) (string, *mending) {
	if w.o.falseClocks == 0 {
		return "", nil
	}
	host := serverCount + w.o.hosts - 1 - w.dice.IntN(w.o.falseClocks)
	by := time.Duration(w.dice.IntN(7200)-3600) * time.Second
	if err := setClock(w.on(host, "clock"), by); err != nil {
		w.fail(err)
	}
	return "steps of a wall clock", nil
}

// deleteApp deletes all keys of an app. After a while an operator ends the run.
func (w *world) deleteApp(ctx context.Context) (string, *mending) {
	g, s := w.aGang(), w.leader(ctx)
	if s == nil {
		return "", nil
	}
	w.note(event{Kind: dataLoss, App: g.app, Why: "deleted"})
	if _, err := command(ctx, s, "DELETE", "/v1/kv/muster/"+g.app+"/?recurse", nil); err != nil {
		w.fail(err)
		return "", nil
	}
	w.operator(ctx, g)
	return "deletions of an app's data", nil
}

// restoreSnapshot saves a snapshot of all data and restores it after a while.
func (w *world) restoreSnapshot(ctx context.Context) (string, *mending) {
	s := w.leader(ctx)
	if s == nil {
		return "", nil
	}
	asked := boottime()
	snapshot, err := command(ctx, s, "GET", "/v1/snapshot", nil)
	if err != nil {
		w.fail(err)
		return "", nil
	}
	return "snapshots restored", w.later(func() {
		s := w.leader(ctx)
		if s == nil {
			w.note(event{Kind: notice, Why: "nobody led when a snapshot was to be restored"})
			return
		}
		w.note(event{Kind: dataLoss, Asked: asked, Why: "restored"})
		if _, err := command(ctx, s, "PUT", "/v1/snapshot", bytes.NewReader(snapshot)); err != nil {
			w.fail(err)
			return
		}
		for _, g := range w.gangs {
			w.operator(ctx, g)
		}
	})
}

// operatorTries is how often an operator tries to adopt an app before the run is ended.
const operatorTries = 3

// operator begins an operator of a gang whose data was lost. It runs beside the schedule, which has to mend servers and
// network meanwhile: no command is answered before.
func (w *world) operator(ctx context.Context, g *gang) {
	g.mu.Lock()
	run := g.run
	g.mu.Unlock()
	w.operators.Go(func() { w.operate(ctx, g, run) })
}

// operate has agents of the gang write the data again, after a while; where none can, it ends the run.
func (w *world) operate(ctx context.Context, g *gang, run string) {
	var said []string
	for range operatorTries {
		pause(ctx, 10*time.Second+dice.N(10*time.Second))
		var adopted bool
		if adopted, said = w.adopt(ctx, g, run); adopted || len(said) == 0 || ctx.Err() != nil {
			return
		}
	}
	g.abandon(run, strings.Join(said, "; "))
}

// adopt asks each agent of the gang: where one has lost nothing, another may have seen more. said is why others did not.
func (w *world) adopt(ctx context.Context, g *gang, run string) (adopted bool, said []string) {
	for _, a := range g.current() {
		out, err := w.verb(ctx, a.host, "adopt", g.app, "--state-dir", w.on(a.host, "s"))
		switch {
		case err == nil:
			adopted = true
			w.note(event{Kind: notice, App: g.app, Run: run, Why: "data adopted"})
		case !strings.Contains(out, nothingLost):
			said = append(said, out)
		}
	}
	return adopted, said
}

// nothingLost is what muster adopt says of an app whose data is there.
const nothingLost = "lost nothing"

// verb runs a command of muster on a host to its end.
func (w *world) verb(ctx context.Context, host int, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	at := w.net.Command(host, muster, args...)
	cmd := exec.CommandContext(ctx, at.Path, at.Args[1:]...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + w.folder, "LANG=C"}
	out, err := cmd.CombinedOutput()
	return string(out), err
}
