package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/registry/consul"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/machine"
	"github.com/muster-agent/muster/shim/status"
)

// How long one answer is waited for.
const (
	socketPatience   = 2 * time.Second
	registryPatience = 6 * time.Second
)

// lookup is where what is known of apps is looked for.
type lookup struct {
	state    status.Dir
	address  registry.Address                 // --registry; zero: not given
	fallback func() (registry.Address, error) // the environment's registry, for an app that this host does not know; nil: none
	named    bool                             // a flag or a variable names that registry
	warn     io.Writer
}

// appFacts are all that could be found out about one app.
type appFacts struct {
	id      string
	local   *status.AppFile                // nil: not started on this host
	result  *status.ResultFile             // nil: not over, or not a run of this host
	states  map[string]status.State        // of agents on this host
	peers   map[string]status.State        // of others, where somebody has asked them
	records map[string]status.InstanceFile // agents of this host that have not said goodbye
	places  map[string]status.PlaceFile
	lasts   map[string]status.Instance // what ended agents left in the log folder
	exits   map[string]status.ExitFile

	address  registry.Address // of the registry that was asked
	registry *consul.Status
	silent   error // why the registry did not answer
}

// unknownApp is an app that neither this host nor the registry knows.
func (k lookup) unknownApp(id string, address registry.Address) error {
	if address.IsZero() {
		return exit.Usagef("no app %q on this host; muster ps lists what is there; if it runs elsewhere, muster status %s --registry URL says where", id, id)
	}
	return exit.With(exit.Usage, noApp{id, address.String()})
}

// noApp is an app that a registry was asked for.
type noApp struct{ id, address string }

func (e noApp) Error() string {
	return fmt.Sprintf("no app %q on this host or in registry %s; muster ps lists what is there, and a job that waits in a launcher's queue is known to that launcher alone", e.id, e.address)
}

func (noApp) Unwrap() error { return registry.ErrNoApp }

// app finds out about one app. A registry that does not answer is an error only when nothing on this
// host answers for it.
func (k lookup) app(ctx context.Context, id string) (appFacts, error) {
	if err := appdef.CheckName("app", id); err != nil {
		return appFacts{}, exit.With(exit.Usage, err)
	}
	f, err := k.onHost(ctx, id)
	if err != nil {
		return f, err
	}
	f.address, err = k.registryOf(f)
	if err != nil || f.address.IsZero() {
		return f, err
	}
	st, err := k.status(ctx, f.address, id)
	switch {
	case err == nil:
		k.complete(ctx, f.address, &st)
		f.heard(&st)
	case errors.Is(err, registry.ErrNoApp) && f.local == nil:
		return f, k.unknownApp(id, f.address)
	case errors.Is(err, registry.ErrUnreachable) && f.local == nil && !k.named:
		return f, exit.Usagef("no app %q on this host, and no registry at %s; give --registry, or the --state-dir that its agents were given", id, f.address)
	case errors.Is(err, registry.ErrNoApp):
		f.silent = err
	case f.local == nil || errors.Is(err, registry.ErrForbidden) || exit.CodeOf(err) == exit.Usage:
		return f, registryError(f.address, err)
	default:
		f.silent = err
		fmt.Fprintf(k.warn, "registry %s does not answer (%v): this is what this host knows\n", f.address, err)
	}
	return f, nil
}

// registryOf is the registry to ask about an app: the one asked for, the one it was started with, the
// environment's. It is zero for an embedded one that ended with its run.
func (k lookup) registryOf(f appFacts) (registry.Address, error) {
	if !k.address.IsZero() {
		return k.address, nil
	}
	if f.local == nil && k.fallback != nil {
		return k.fallback()
	}
	if f.local == nil {
		return registry.Address{}, nil
	}
	if path, ok := f.local.Registry.Socket(); ok {
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			return registry.Address{}, nil
		}
	}
	return f.local.Registry, nil
}

// registryError is a registry's refusal or silence with the exit code that belongs to it.
func registryError(address registry.Address, err error) error {
	if _, ok := errors.AsType[exit.Error](err); ok { // it was never asked
		return err
	}
	code := exit.Registry
	if errors.Is(err, registry.ErrForbidden) {
		code = exit.Forbidden
	}
	return exit.With(code, fmt.Errorf("registry %s: %w; give --registry another, or look at it with muster doctor", address, err))
}

// openForQuestions opens a registry for the command line.
func openForQuestions(address registry.Address) (*consul.Client, error) {
	c, err := consul.Open(consul.Config{Address: address})
	return c, exit.With(exit.Usage, err)
}

// askGang asks an app's conductor for something. What becomes of it its directive shows.
func askGang(ctx context.Context, address registry.Address, app string, ask registry.Ask) error {
	c, err := openForQuestions(address)
	if err != nil {
		return err
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(ctx, registryPatience)
	defer cancel()
	if err := c.Ask(ctx, app, ask); err != nil {
		return registryError(address, err)
	}
	return nil
}

// status asks the registry for one app.
func (k lookup) status(ctx context.Context, address registry.Address, id string) (consul.Status, error) {
	c, err := openForQuestions(address)
	if err != nil {
		return consul.Status{}, err
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(ctx, registryPatience)
	defer cancel()
	return c.Status(ctx, id)
}

// complete reads a definition that stands apart from its app's record. One that cannot be read says nothing.
func (k lookup) complete(ctx context.Context, address registry.Address, st *consul.Status) {
	if st.App.DefID == "" {
		return
	}
	c, err := openForQuestions(address)
	if err == nil {
		defer c.Close()
		ctx, cancel := context.WithTimeout(ctx, registryPatience)
		defer cancel()
		st.App.Def, err = c.Definition(ctx, st.ID, st.App)
	}
	if err != nil {
		fmt.Fprintf(k.warn, "%s: %v: roles and ranks are not known\n", st.ID, err)
	}
}

// onHost reads the files of this host and asks its agents.
func (k lookup) onHost(ctx context.Context, id string) (appFacts, error) {
	f := appFacts{
		id: id, states: map[string]status.State{}, records: map[string]status.InstanceFile{},
		lasts: map[string]status.Instance{}, exits: map[string]status.ExitFile{},
	}
	var local status.AppFile
	err := status.ReadJSON(filepath.Join(k.state.App(id), "app.json"), &local)
	if errors.Is(err, fs.ErrNotExist) {
		return f, nil
	}
	if err != nil {
		return f, fmt.Errorf("app %s: %w", id, err)
	}
	f.local = &local
	sockets := k.state.Sockets(id)
	for name := range sockets {
		var record status.InstanceFile
		if status.ReadJSON(filepath.Join(k.state.App(id), name+".json"), &record) == nil {
			f.records[name] = record
		}
	}
	f.states, f.places = states(ctx, sockets), k.state.Places(id, local.Run)
	f.readLeft()
	var result status.ResultFile
	if status.ReadJSON(filepath.Join(k.state.App(id), "result.json"), &result) == nil && result.Run == f.run() {
		f.result = &result
	}
	return f, nil
}

// askPeers asks the agents on other hosts that listen there, and can be reached from here, with the run's token.
func (f *appFacts) askPeers(ctx context.Context) {
	if f.registry == nil {
		return
	}
	f.peers = askAgents(ctx, nil, slices.DeleteFunc(slices.Clone(f.registry.Members), func(m consul.MemberStatus) bool {
		_, here := f.states[m.Instance.String()]
		return here
	}), f.registry.App.Token)
}

// mostAsked bounds how many agents are asked.
const mostAsked = 256

// askAgents asks members that are alive for their state: those of this host by their sockets, others where they listen. Who does not
// answer is left out.
func askAgents(ctx context.Context, sockets map[string]string, members []consul.MemberStatus, token string) map[string]status.State {
	ctx, cancel := context.WithTimeout(ctx, socketPatience)
	defer cancel()
	said := map[string]status.State{}
	var mu sync.Mutex
	var wg sync.WaitGroup
	asked := 0
	for _, m := range members {
		path, here := sockets[m.Instance.String()]
		there := m.Peer != "" && token != ""
		if !m.Live || !here && !there || asked == mostAsked {
			continue
		}
		asked++
		ask := func(agent *status.Client) bool {
			defer agent.Close()
			st, err := agent.State(ctx)
			if err != nil || st.Inc != m.Inc {
				return false
			}
			mu.Lock()
			defer mu.Unlock()
			said[m.Instance.String()] = st
			return true
		}
		wg.Go(func() {
			if !(here && ask(status.Dial(path))) && there { // an earlier agent may have left a socket here
				ask(status.DialPeer(m.Peer, token))
			}
		})
	}
	wg.Wait()
	return said
}

// states asks all agents at once; those that do not answer are left out.
func states(ctx context.Context, sockets map[string]string) map[string]status.State {
	ctx, cancel := context.WithTimeout(ctx, socketPatience)
	defer cancel()
	found := map[string]status.State{}
	var mu sync.Mutex
	var wg sync.WaitGroup
	for name, path := range sockets {
		wg.Go(func() {
			c := status.Dial(path)
			defer c.Close()
			st, err := c.State(ctx)
			if err != nil {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			found[name] = st
		})
	}
	wg.Wait()
	return found
}

// logDirs are the log folders of the run's instances on this host: those that their agents have told of, and those in the run's.
func (f *appFacts) logDirs() map[string]string {
	dirs := map[string]string{}
	entries, _ := os.ReadDir(f.local.LogDir) // it may be gone
	for _, e := range entries {
		if _, err := registry.ParseInstance(e.Name()); err == nil && e.IsDir() {
			dirs[e.Name()] = filepath.Join(f.local.LogDir, e.Name())
		}
	}
	for name, place := range f.places {
		if place.LogDir != "" {
			dirs[name] = place.LogDir
		}
	}
	for name, st := range f.states {
		if st.LogDir != "" {
			dirs[name] = st.LogDir
		}
	}
	return dirs
}

// readLeft reads what agents that ended in this run left in their log folders.
func (f *appFacts) readLeft() {
	for name, dir := range f.logDirs() {
		var exit status.ExitFile
		if readOfRun(filepath.Join(dir, "exit.json"), f.local.Started, &exit) && exit.App == f.id {
			f.exits[name] = exit
		}
		var last status.Instance
		if readOfRun(filepath.Join(dir, "last.json"), f.local.Started, &last) {
			f.lasts[name] = last
		}
	}
}

// readOfRun reads a file unless it is older than the run.
func readOfRun(path string, started time.Time, into any) bool {
	info, err := os.Lstat(path)
	if err != nil || info.ModTime().Before(started.Truncate(time.Second)) {
		return false
	}
	return status.ReadJSON(path, into) == nil
}

// run is the run that is spoken of: the registry's word, then the agents', then the file's.
func (f *appFacts) run() string {
	if f.registry != nil {
		return f.registry.App.Run
	}
	for _, st := range f.states {
		return st.Run
	}
	if f.local != nil {
		return f.local.Run
	}
	return ""
}

// heard takes the registry's word. What an earlier run has left on this host says nothing of the one that is there now.
func (f *appFacts) heard(st *consul.Status) {
	f.registry = st
	if !f.here() {
		f.result = nil
		clear(f.lasts)
	}
}

// here tells that this host's files are of the run that is spoken of. Else an earlier one has left them, and the run is elsewhere.
func (f *appFacts) here() bool { return f.local != nil && f.local.Run == f.run() }

// verdict is the run's one outcome, nil while there is none that anybody here knows of.
func (f *appFacts) verdict() *registry.Verdict {
	if f.registry != nil {
		return f.registry.Verdict
	}
	if f.result != nil {
		return f.result.Verdict
	}
	for _, x := range f.exits {
		if x.Verdict != nil && x.Verdict.Run == f.run() {
			return x.Verdict
		}
	}
	return nil
}

// living tells whether any agent on this host answers.
func (f *appFacts) living() bool { return len(f.states) > 0 }

// phase is where the whole run stands, in one word.
func (f *appFacts) phase() string {
	if st := f.registry; st != nil {
		switch {
		case st.Interrupted():
			return "interrupted"
		case st.Verdict != nil && st.Live == 0:
			return "done"
		case st.Verdict != nil || st.Directive.Act == registry.ActStop:
			return "stopping"
		case st.Directive.Act == registry.ActRun:
			return "running"
		}
		return "waiting"
	}
	switch {
	case f.living():
		return f.phaseOfAgents()
	case f.verdict() != nil, f.result != nil && f.result.Outcome == string(registry.Failed):
		return "done"
	case f.result == nil && f.local != nil && status.ProcessLives(f.local.Pid):
		return "starting"
	}
	return "interrupted"
}

// phaseOfAgents is the phase of the agent that is furthest.
func (f *appFacts) phaseOfAgents() string {
	found := map[machine.Phase]bool{}
	for _, st := range f.states {
		found[machine.Phase(st.Phase)] = true
	}
	switch {
	case found[machine.Running] || found[machine.Backoff]:
		return "running"
	case found[machine.Stopping] || found[machine.Finishing] || found[machine.Leaving] || found[machine.Done]:
		return "stopping"
	}
	return "waiting"
}

// outcome is the verdict's, interrupted for a run that ended without one, nil while it goes on.
func (f *appFacts) outcome() *string {
	out := ""
	switch v := f.verdict(); {
	case v != nil:
		out = string(v.Outcome)
	case f.result != nil:
		out = f.result.Outcome
	case f.phase() == "interrupted":
		out = "interrupted"
	default:
		return nil
	}
	return &out
}

// started is when the run began.
func (f *appFacts) started() time.Time {
	if f.here() {
		return f.local.Started
	}
	if f.registry != nil {
		return f.registry.App.Created
	}
	return time.Time{}
}

// name is the application's name.
func (f *appFacts) name() string {
	name := ""
	if f.here() {
		name = f.local.Name
	}
	if f.registry != nil {
		name = cmp.Or(name, definition(f.registry.App).Name)
	}
	return name
}
