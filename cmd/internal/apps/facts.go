package apps

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/registry/consul"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/history"
	"github.com/muster-agent/muster/shim/machine"
	"github.com/muster-agent/muster/shim/status"
)

// How long one answer is waited for.
const (
	socketPatience = 2 * time.Second
	Patience       = 6 * time.Second
)

// NoState is where no app of this host is found: a registry or a page alone is asked.
const NoState status.Dir = "/nonexistent"

// Lookup is where what is known of apps is looked for.
type Lookup struct {
	State   status.Dir
	Address registry.Address // --registry; zero: not given
	// the environment's registry, for an app that this host does not know; nil: none
	Fallback func() (registry.Address, error)
	Named    bool // a flag or a variable names that registry
	Warn     io.Writer
	Who      string // in whose name it asks; "": Asker()
	// Over keeps rows for who lists again and again; nil: all are read each time.
	Over *Over
	Past Past
	Page Page // asked in place of registries and of other hosts; nil: they are asked
}

// Facts are all that could be found out about one app.
type Facts struct {
	ID      string
	Owner   string                         // user of this host who started it; "": not started on this host
	Local   *status.AppFile                // nil: not started on this host
	Result  *status.ResultFile             // nil: not over, or not a run of this host
	States  map[string]status.State        // of agents on this host
	Peers   map[string]status.State        // of other hosts, where they were asked
	Records map[string]status.InstanceFile // agents of this host that have not said goodbye
	places  map[string]status.PlaceFile
	own     bool                       // the run's registry is its own, of this host
	Lasts   map[string]status.Instance // what ended agents left in the log folder
	exits   map[string]status.ExitFile

	Address  registry.Address // of the registry that was asked
	Registry *consul.Status
	Silent   error // why the registry did not answer

	Past *history.Kept // nil: it was not found in the history store
	page Page          // that told what Registry says; nil: the registry did
}

// DataLost tells that agents of the app live on this host, and its registry answers without knowing it.
func (f Facts) DataLost() bool {
	return f.Registry == nil && f.Living() && errors.Is(f.Silent, registry.ErrNoApp)
}

// NoRegistry is why what only the registry can do is not done.
func (f Facts) NoRegistry(otherwise string) error {
	if f.DataLost() {
		return exit.With(exit.Registry, fmt.Errorf("%s: registry %s has lost its data; muster adopt %s writes it again",
			f.ID, f.Address, f.ID))
	}
	return exit.With(exit.Registry, fmt.Errorf("%s: its registry does not answer, and %s", f.ID, otherwise))
}

// UnknownApp is an app that neither this host nor the registry knows.
func (k Lookup) UnknownApp(id string, address registry.Address) error {
	return exit.With(exit.Usage, noApp{id: id, address: address.String(), other: k.otherUser(id)})
}

// otherUser is the state folder of another user of this host who has that app, where root asks; "": there is none.
func (k Lookup) otherUser(id string) status.Dir {
	for _, dir := range k.otherUsers() {
		if _, err := os.Stat(dir.App(id)); err == nil {
			return dir
		}
	}
	return ""
}

// otherUsers are the state folders of other users of this host, where root asks for its own apps.
func (k Lookup) otherUsers() []status.Dir {
	if os.Geteuid() != 0 || k.State != status.Dir(status.StateDir(0, "")) {
		return nil
	}
	return status.OtherUsers("/")
}

// noApp is an app that this host and a registry were asked for; "": this host alone.
type noApp struct {
	id, address string
	nowhere     string     // where no registry answered
	other       status.Dir // of another user of this host, who has it
}

func (e noApp) Error() string {
	if e.other != "" {
		return fmt.Sprintf("no app %q of this user; another user of this host has one: --state-dir %s", e.id, e.other)
	}
	if e.nowhere != "" {
		return fmt.Sprintf("no app %q on this host, and no registry at %s; give --registry, or the --state-dir "+
			"that its agents were given", e.id, e.nowhere)
	}
	if e.address == "" {
		return fmt.Sprintf("no app %q on this host; muster ps lists what is there; if it runs elsewhere, muster "+
			"status %s --registry URL says where", e.id, e.id)
	}
	return fmt.Sprintf("no app %q on this host or in registry %s; muster ps lists what is there, and a job that "+
		"waits in a launcher's queue is known to that launcher alone", e.id, e.address)
}

func (noApp) Unwrap() error { return registry.ErrNoApp }

// App finds out about one app. A registry that does not answer is an error only when nothing on this
// host answers for it.
func (k Lookup) App(ctx context.Context, id string) (Facts, error) {
	if err := appdef.CheckName("app", id); err != nil {
		return Facts{}, exit.With(exit.Usage, err)
	}
	if k.Past.Alone {
		return k.ofPast(ctx, id)
	}
	f, err := k.present(ctx, id)
	nowhere := errors.Is(err, registry.ErrNoApp) || !k.Named && k.Address.IsZero()
	if err == nil || f.Local != nil || k.Past.Store == nil || !nowhere {
		return f, err
	}
	past, unkept := k.ofPast(ctx, id)
	if unkept != nil {
		return f, err
	}
	fmt.Fprintf(k.Warn, "%s: from the history store %s\n", id, k.Past.Store.URL)
	return past, nil
}

// present is App without the history store.
func (k Lookup) present(ctx context.Context, id string) (Facts, error) {
	f, err := k.OnHost(ctx, id)
	if err != nil {
		return f, err
	}
	f.Address, err = k.registryOf(ctx, f)
	if f.page = k.Page; err == nil && f.Address.IsZero() && f.Local == nil {
		err = k.UnknownApp(id, f.Address)
	}
	if err != nil || f.Address.IsZero() {
		return f, err
	}
	st, err := k.Status(ctx, f.Address, id)
	switch {
	case err == nil:
		k.Complete(ctx, f.Address, &st)
		LeftOut(k.Warn, "registry "+f.Address.String(), st.Broken)
		f.heard(&st)
	case k.Page != nil: // it says what it is
		return f, err
	case errors.Is(err, registry.ErrNoApp) && f.Local == nil:
		return f, k.UnknownApp(id, f.Address)
	case errors.Is(err, registry.ErrUnreachable) && f.Local == nil && !k.Named:
		return f, exit.With(exit.Usage, noApp{id: id, nowhere: f.Address.String(), other: k.otherUser(id)})
	case errors.Is(err, registry.ErrNoApp):
		f.Silent = err
	case f.Local == nil || errors.Is(err, registry.ErrForbidden) || exit.CodeOf(err) == exit.Usage:
		return f, RegistryError(f.Address, err)
	default:
		f.Silent = err
		fmt.Fprintf(k.Warn, "registry %s does not answer (%v): this is what this host knows\n", f.Address, err)
	}
	return f, nil
}

// registryOf is the registry to ask about an app: the one asked for, the one it was started with, the
// environment's. It is zero for an embedded one that ended with its run.
func (k Lookup) registryOf(ctx context.Context, f Facts) (registry.Address, error) {
	if k.Page != nil {
		return k.Page.Address(ctx)
	}
	if !k.Address.IsZero() {
		return k.Address, nil
	}
	if f.Local == nil && k.Fallback != nil {
		return k.Fallback()
	}
	if f.Local == nil {
		return registry.Address{}, nil
	}
	if path, ok := f.Local.Registry.Socket(); ok {
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			return registry.Address{}, nil
		}
	}
	return f.Local.Registry, nil
}

// RegistryError is a registry's refusal or silence with the exit code that belongs to it.
func RegistryError(address registry.Address, err error) error {
	if _, ok := errors.AsType[exit.Error](err); ok { // it was never asked
		return err
	}
	if errors.Is(err, registry.ErrForbidden) {
		return exit.OfRegistry(fmt.Errorf("registry %s: %w; %s", address, err, consul.TokenRemedy("")))
	}
	return exit.OfRegistry(fmt.Errorf("registry %s: %w; start it, give --registry another, or look at it with "+
		"muster doctor", address, err))
}

// Open opens a registry for the command line.
func Open(address registry.Address) (*consul.Client, error) {
	c, err := consul.Open(consul.Config{Address: address})
	return c, exit.With(exit.Usage, err)
}

// Status asks the registry for one app.
func (k Lookup) Status(ctx context.Context, address registry.Address, id string) (consul.Status, error) {
	c, err := k.Open(address)
	if err != nil {
		return consul.Status{}, err
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	return c.Status(ctx, id)
}

// Complete reads a definition that stands apart from its app's record. One that cannot be read says nothing.
func (k Lookup) Complete(ctx context.Context, address registry.Address, st *consul.Status) {
	if st.App.DefID == "" {
		return
	}
	c, err := k.Open(address)
	if err == nil {
		defer c.Close()
		ctx, cancel := context.WithTimeout(ctx, Patience)
		defer cancel()
		st.App.Def, err = c.Definition(ctx, st.ID, st.App)
	}
	if err != nil {
		fmt.Fprintf(k.Warn, "%s: %v: roles and ranks are not known\n", st.ID, err)
	}
}

// OnHost reads the files of this host and asks its agents.
func (k Lookup) OnHost(ctx context.Context, id string) (Facts, error) {
	f := Facts{
		ID: id, States: map[string]status.State{}, Records: map[string]status.InstanceFile{},
		Lasts: map[string]status.Instance{}, exits: map[string]status.ExitFile{},
	}
	if err := k.State.Trusted(); err != nil {
		return f, exit.With(exit.Forbidden, err)
	}
	var local status.AppFile
	err := status.ReadJSON(filepath.Join(k.State.App(id), "app.json"), &local)
	if errors.Is(err, fs.ErrNotExist) {
		return f, nil
	}
	if err != nil {
		return f, fmt.Errorf("app %s: %w", id, err)
	}
	f.Local, f.Owner = &local, k.owner(id)
	f.own = local.Registry == registry.SocketAddress(k.State.Socket(id, "registry"))
	sockets := k.State.Sockets(id)
	for name := range sockets {
		var record status.InstanceFile
		if status.ReadJSON(filepath.Join(k.State.App(id), name+".json"), &record) == nil {
			f.Records[name] = record
		}
	}
	f.States, f.places = AskSockets(ctx, sockets), k.State.Places(id, local.Run)
	f.readLeft()
	var result status.ResultFile
	if status.ReadJSON(filepath.Join(k.State.App(id), "result.json"), &result) == nil && result.Run == f.Run() {
		f.Result = &result
	}
	return f, nil
}

// LogDirs are the log folders of the run's instances on this host: those that their agents have told of, and those in
// the run's.
func (f *Facts) LogDirs() map[string]string {
	dirs := map[string]string{}
	if f.Local == nil {
		return dirs
	}
	entries, _ := os.ReadDir(f.Local.LogDir) // it may be gone
	for _, e := range entries {
		if _, err := registry.ParseInstance(e.Name()); err == nil && e.IsDir() {
			dirs[e.Name()] = filepath.Join(f.Local.LogDir, e.Name())
		}
	}
	for name, place := range f.places {
		if place.LogDir != "" {
			dirs[name] = place.LogDir
		}
	}
	for name, st := range f.States {
		if st.LogDir != "" {
			dirs[name] = st.LogDir
		}
	}
	return dirs
}

// readLeft reads what agents that ended in this run left in their log folders.
func (f *Facts) readLeft() {
	for name, dir := range f.LogDirs() {
		var exit status.ExitFile
		if readOfRun(filepath.Join(dir, "exit.json"), f.Local.Started, &exit) && exit.App == f.ID {
			f.exits[name] = exit
		}
		var last status.Instance
		if readOfRun(filepath.Join(dir, "last.json"), f.Local.Started, &last) {
			f.Lasts[name] = last
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

// Run is the run that is spoken of: the registry's word, then the agents', then the file's.
func (f *Facts) Run() string {
	if f.Registry != nil {
		return f.Registry.App.Run
	}
	for _, st := range f.States {
		return st.Run
	}
	if f.Local != nil {
		return f.Local.Run
	}
	return ""
}

// heard takes the registry's word. What an earlier run has left on this host says nothing of the one that is there now.
func (f *Facts) heard(st *consul.Status) {
	f.Registry = st
	if !f.Here() {
		f.Result = nil
		clear(f.Lasts)
	}
}

// Here tells that this host's files are of the run that is spoken of. Else an earlier one has left them, and the run is
// elsewhere.
func (f *Facts) Here() bool { return f.Local != nil && f.Local.Run == f.Run() }

// Verdict is the run's one outcome, nil while there is none that anybody here knows of.
func (f *Facts) Verdict() *registry.Verdict {
	if f.Registry != nil {
		return f.Registry.Verdict
	}
	if f.Result != nil {
		return f.Result.Verdict
	}
	for _, x := range f.exits {
		if x.Verdict != nil && x.Verdict.Run == f.Run() {
			return x.Verdict
		}
	}
	return nil
}

// Over is an error when the run has its verdict and none of its agents lives: nothing can be asked of it any more.
func (f *Facts) Over() error {
	v := f.Verdict()
	if v == nil || f.Living() || f.Registry != nil && f.Registry.Live > 0 {
		return nil
	}
	return fmt.Errorf("%s is over: %s", f.ID, v.Outcome)
}

// Living tells whether any agent on this host answers.
func (f *Facts) Living() bool { return len(f.States) > 0 }

// Phase is where the whole run stands, in one word.
func (f *Facts) Phase() string {
	if st := f.Registry; st != nil {
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
	case f.Living():
		return f.phaseOfAgents()
	case f.Verdict() != nil, f.Result != nil && f.Result.Outcome == string(registry.Failed):
		return "done"
	case f.Result == nil && f.Local != nil && status.ProcessLives(f.Local.Pid):
		return "starting"
	}
	return "interrupted"
}

// phaseOfAgents is the phase of the agent that is furthest.
func (f *Facts) phaseOfAgents() string {
	found := map[machine.Phase]bool{}
	for _, st := range f.States {
		found[machine.Phase(st.Phase)] = true
	}
	switch {
	case found[machine.Running] || found[machine.Backoff] || found[machine.Holding]:
		return "running"
	case found[machine.Stopping] || found[machine.Finishing] || found[machine.Leaving] || found[machine.Done]:
		return "stopping"
	}
	return "waiting"
}

// Outcome is the verdict's, interrupted for a run that ended without one, nil while it goes on.
func (f *Facts) Outcome() *string {
	out := ""
	switch v := f.Verdict(); {
	case v != nil:
		out = string(v.Outcome)
	case f.Result != nil:
		out = f.Result.Outcome
	case f.Phase() == "interrupted":
		out = "interrupted"
	default:
		return nil
	}
	return &out
}

// Started is when the run began: by the word of a registry that other hosts ask as well, so that all say the same. The
// registry of a run by itself ends with it, and this host's file says the same before and after.
func (f *Facts) Started() time.Time {
	switch {
	case f.dated():
		return f.Registry.App.Created
	case f.Here():
		return f.Local.Started
	}
	return time.Time{}
}

// dated tells that a registry which is not the run's own says when the run began.
func (f *Facts) dated() bool {
	return f.Registry != nil && !f.Registry.App.Created.IsZero() && !(f.own && f.Here())
}

// Name is the application's name.
func (f *Facts) Name() string {
	name := ""
	if f.Here() {
		name = f.Local.Name
	}
	if f.Registry != nil {
		name = cmp.Or(name, Definition(f.Registry.App).Name)
	}
	if f.Past != nil {
		name = cmp.Or(name, f.Past.Name)
	}
	return name
}

// Definition is the App that the registry keeps; one that cannot be read says nothing.
func Definition(record registry.AppRecord) appdef.App {
	app, err := appdef.Decode(record.Def)
	if err != nil {
		return appdef.App{}
	}
	return app
}
