package history

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"maps"
	dice "math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/tests/child"
)

// gang is one app: its launcher begins run after run, keeps an agent per instance while a run goes on, and starts it
// again when it has died.
type gang struct {
	w     *world
	app   string
	scope string
	size  int
	work  int // seconds that a process works, about

	mu     sync.Mutex
	run    string
	agents map[int]*agent     // those that run, by pid
	stop   context.CancelFunc // an operator ends the current run: nothing is started again
}

// agent is a muster agent that runs.
type agent struct {
	gang     *gang
	run      string
	instance registry.Instance
	host     int
	pid      int
	process  *child.Process
}

// define lays the app's package out.
func (g *gang) define() error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	type object = map[string]any
	const schema = "http://example.org/specification/v2.0.0"
	export := object{"name": "address", "value": "${worker_HOST}:${site.global.worker.port}"}
	for name, value := range map[string]any{
		"metainfo.json": object{"schemaVersion": "2.1", "application": object{
			"name": "history", "version": "1", "exportGroups": []any{object{"name": "worker", "exports": []any{export}}},
			"components": []any{object{"name": "worker", "category": "SLAVE", "compExports": "worker-address"}},
		}},
		"appConfig.default.json": object{"schema": schema, "global": map[string]string{
			"muster.framework": "none", "muster.command": fmt.Sprintf("exec %q %s", self, puppetVerb),
			"muster.restart": g.scope, "muster.restart.backoff": "0.1", "muster.restart.budget": "30", "muster.stop.grace": "5",
			"muster.env." + folderVariable: g.w.folder, "muster.env." + workVariable: strconv.Itoa(g.work),
			"site.global.worker.port": "${worker.ALLOCATED_PORT}{PER_CONTAINER}",
		}, "components": object{"worker": object{}}},
		"resources.default.json": object{"schema": schema, "global": object{}, "components": object{"worker": map[string]string{
			"yarn.role.priority": "1", "yarn.component.instances": strconv.Itoa(g.size), "yarn.memory": "64", "yarn.vcores": "1",
		}}},
	} {
		text, err := json.Marshal(value)
		if err == nil {
			err = os.MkdirAll(g.definition(), 0o755)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(g.definition(), name), text, 0o644)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (g *gang) definition() string { return filepath.Join(g.w.folder, g.app) }

func (g *gang) instances() (all []string) {
	for i := range g.size {
		all = append(all, registry.Instance{Component: "worker", Index: i}.String())
	}
	return all
}

// live begins one run after the other until the world begins no more; at the context's end all agents are ended.
func (g *gang) live(ctx context.Context) {
	for n := 1; g.w.beginsRuns() && ctx.Err() == nil; n++ {
		run := fmt.Sprintf("r%03d", n)
		at, cancel := context.WithCancel(ctx)
		g.mu.Lock()
		g.run, g.stop = run, cancel
		g.mu.Unlock()
		g.w.note(event{Kind: runBegins, App: g.app, Run: run, Scope: g.scope, Instances: g.instances()})
		var slots sync.WaitGroup
		for i := range g.size {
			slots.Go(func() { g.slot(at, run, i) })
		}
		slots.Wait()
		if at.Err() != nil && ctx.Err() == nil { // an operator's stop: sessions of killed agents end by time
			pause(ctx, registry.DefaultTimes().Expiry())
		}
		cancel()
	}
}

// slot keeps one instance's agent running until its run is over.
func (g *gang) slot(ctx context.Context, run string, index int) {
	host := g.w.hosts[(index+len(g.app)+int(g.app[len(g.app)-1]))%len(g.w.hosts)]
	for ctx.Err() == nil {
		a, err := g.start(run, index, host)
		if err != nil {
			g.w.fail(err)
			return
		}
		code := a.wait(ctx)
		g.w.note(event{
			Kind: agentEnds, App: g.app, Run: run, Instance: a.instance.String(), Host: g.w.net.Addr(host), Pid: a.pid,
			Code: code,
		})
		switch {
		case code == 64 || code == 65 || code == 77: // no launcher's task: the test is wrong
			g.w.fail(fmt.Errorf("agent of %s %s %s: exit code %d: %s", g.app, run, a.instance, code, g.w.tail(a.log())))
			return
		case code == 0 || g.w.reader.outcome(g.app, run) != "":
			return
		}
		pause(ctx, 200*time.Millisecond+dice.N(time.Second))
		if dice.IntN(100) < g.w.o.movePercent {
			host = g.w.hosts[dice.IntN(len(g.w.hosts))]
		}
	}
}

// start starts an agent on a host.
func (g *gang) start(run string, index, host int) (*agent, error) {
	in := registry.Instance{Component: "worker", Index: index}
	a := &agent{gang: g, run: run, instance: in, host: host}
	args := []string{
		"agent", "--app", g.definition(), "--app-id", g.app, "--run", run, "--component", in.Component,
		"--index", strconv.Itoa(index), "--host", g.w.net.Addr(host), "--work-dir",
		filepath.Join(g.w.on(host, "w"), g.app),
		"--state-dir", g.w.on(host, "s"), "--registry", "consul://" + proxyAddress, "--engine", "process",
		"--env", runVariable + "=" + run, "--lost-mass", "90s", "--barrier-timeout", "3m",
	}
	cmd := g.w.net.Command(host, g.w.binary(host), args...)
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + g.w.folder, "LANG=C", "NOMAD_ALLOC_ID=" + rand.Text(),
		clockVariable + "=" + g.w.on(host, "clock"),
	}
	var err error
	if a.process, err = child.StartLogged(cmd, a.log()); err != nil {
		return nil, err
	}
	a.pid = a.process.PID
	g.mu.Lock()
	g.agents[a.pid] = a
	g.mu.Unlock()
	g.w.agents.Add(1)
	return a, nil
}

func (a *agent) log() string {
	return filepath.Join(a.gang.w.folder, fmt.Sprintf("%s-%s.log", a.gang.app, a.instance))
}

// wait returns the agent's exit code, as a shell sees it. When the context ends the agent is asked to end, and killed if
// it does not.
func (a *agent) wait(ctx context.Context) int {
	stop := context.AfterFunc(ctx, func() {
		_ = a.process.Signal(syscall.SIGCONT)
		if a.process.End(syscall.SIGTERM, 30*time.Second) != nil {
			a.gang.w.note(event{Kind: notice, App: a.gang.app, Why: "agent killed that did not end after TERM"})
		}
	})
	defer stop()
	<-a.process.Gone
	a.gang.mu.Lock()
	delete(a.gang.agents, a.pid)
	a.gang.mu.Unlock()
	return a.process.Code()
}

// current are the agents that run now.
func (g *gang) current() []*agent {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Collect(maps.Values(g.agents))
}

// abandon is an operator's end of a run whose data was lost.
func (g *gang) abandon(run, why string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.run != run || g.stop == nil {
		return
	}
	g.w.note(event{Kind: runStops, App: g.app, Run: run, Why: why})
	g.stop()
}
