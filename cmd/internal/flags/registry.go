package flags

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/registry/consul"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/ports"
	"github.com/muster-agent/muster/shim/status"
)

// Registry say which registry and with what times.
type Registry struct {
	Address  string
	TTL      time.Duration
	lost     time.Duration
	lostMass time.Duration
	Barrier  time.Duration
}

// Set is what a verb's flags are added to.
type Set interface {
	BoolVar(p *bool, name string, value bool, usage string)
	DurationVar(p *time.Duration, name string, value time.Duration, usage string)
	IntVar(p *int, name string, value int, usage string)
	StringVar(p *string, name, value, usage string)
	StringArrayVar(p *[]string, name string, value []string, usage string)
	StringArrayVarP(p *[]string, name, short string, value []string, usage string)
	MarkHidden(name string) error
}

// Register adds the flags.
func (f *Registry) Register(flags Set) {
	flags.StringVar(&f.Address, "registry", "", registry.AddressForms+" (default: CONSUL_HTTP_ADDR)")
	t := registry.DefaultTimes()
	flags.DurationVar(&f.TTL, "session-ttl", t.TTL, "time to live of an agent's session in the registry")
	flags.DurationVar(&f.lost, "lost-grace", t.Lost, "wait before a member whose session expired is replaced")
	flags.DurationVar(&f.lostMass, "lost-mass", t.LostMass, "the same while most of the gang is unreachable")
	flags.DurationVar(&f.Barrier, "barrier-timeout", 0,
		"longest wait for the gang (default: muster.barrier.timeout, 30m)")
}

// Args are the same settings as arguments for an agent.
func (f *Registry) Args() []string {
	out := []string{
		"--session-ttl", f.TTL.String(), "--lost-grace", f.lost.String(), "--lost-mass",
		f.lostMass.String(),
	}
	if f.Barrier > 0 {
		out = append(out, "--barrier-timeout", f.Barrier.String())
	}
	return out
}

// Named tells that a flag or a variable names the registry.
func (f *Registry) Named() bool { return f.Address != "" || os.Getenv("CONSUL_HTTP_ADDR") != "" }

// Resolve is the registry that the flag names, else CONSUL_HTTP_ADDR, else Consul's agent on this host.
func (f *Registry) Resolve() (registry.Address, error) {
	if f.Address != "" {
		at, err := registry.ParseAddress(f.Address)
		return at, exit.With(exit.Usage, err)
	}
	addr := os.Getenv("CONSUL_HTTP_ADDR")
	if addr == "" {
		return registry.DefaultAddress(), nil
	}
	tls := os.Getenv("CONSUL_HTTP_SSL")
	at, err := registry.ParseConsulAddress(addr, tls == "true" || tls == "1")
	if err != nil {
		return at, exit.Usagef("CONSUL_HTTP_ADDR: %w", err)
	}
	return at, nil
}

// Times checks the protocol's inequalities. Barrier is 0 without --barrier-timeout: then the app's own setting holds.
func (f *Registry) Times() (registry.Times, error) {
	t := registry.DefaultTimes()
	t.TTL, t.Lost, t.LostMass = f.TTL, f.lost, f.lostMass
	if f.Barrier < 0 {
		return t, exit.Usagef("--barrier-timeout %s: want a duration above 0, such as 30m", f.Barrier)
	}
	if f.Barrier > 0 {
		t.Barrier = f.Barrier
	}
	if err := errors.Join(t.Check()...); err != nil {
		return t, exit.With(exit.Usage, err)
	}
	t.Barrier = f.Barrier
	return t, nil
}

// Open opens a client of the registry, with its times.
func (f *Registry) Open(log *slog.Logger) (*consul.Client, registry.Times, error) {
	t, err := f.Times()
	if err != nil {
		return nil, t, err
	}
	at, err := f.Resolve()
	if err != nil {
		return nil, t, err
	}
	c, err := consul.Open(consul.Config{Address: at, Times: t, Logger: log})
	if err != nil {
		return nil, t, exit.With(exit.Usage, err)
	}
	return c, t, nil
}

// State say where this host's state lies.
type State struct{ Dir string }

// Register adds the flag.
func (f *State) Register(flags Set) {
	flags.StringVar(&f.Dir, "state-dir", "", "folder of this host's state (default: /run/muster for root)")
}

// Resolve is the folder that the flag names, else the usual one of the user.
func (f *State) Resolve() status.Dir {
	if f.Dir != "" {
		return status.Dir(Absolute(f.Dir))
	}
	return status.Dir(status.StateDir(os.Geteuid(), os.Getenv("XDG_RUNTIME_DIR")))
}

// Units is the state folder of the agents that systemd's units start, beside the usual one; "": another was named.
func (f *State) Units() status.Dir {
	if f.Dir != "" {
		return ""
	}
	return status.Dir(status.UnitsDir(os.Geteuid(), os.Getenv("XDG_RUNTIME_DIR")))
}

// of is the folder that has the app: the resolved one, unless that of the units alone knows it, or has a later run.
func (f *State) of(app string) status.Dir {
	return folderOf(app, f.Resolve(), f.Units())
}

func folderOf(app string, usual, units status.Dir) status.Dir {
	if app == "" || units == "" {
		return usual
	}
	run, known := startOf(units, app)
	if other, too := startOf(usual, app); !known || too && !run.After(other) {
		return usual
	}
	return units
}

// startOf is when the latest run of an app in a state folder began; zero: nothing tells.
func startOf(d status.Dir, app string) (began time.Time, known bool) {
	if info, err := os.Lstat(d.App(app)); err != nil || !info.IsDir() {
		return time.Time{}, false
	}
	all, _ := d.Apps() // what may not be read tells nothing
	for _, one := range all {
		if one.App == app {
			began = one.Started
		}
	}
	return began, true
}

// Absolute is a path from the root on, where the current folder is known.
func Absolute(path string) string {
	abs, err := filepath.Abs(path)
	if err != nil {
		return path
	}
	return abs
}

// Changed are the settings that differ from an agent's own.
func (f *Registry) Changed() []string {
	var out []string
	t := registry.DefaultTimes()
	usual := Registry{TTL: t.TTL, lost: t.Lost, lostMass: t.LostMass}
	all, same := f.Args(), usual.Args()
	for i := 0; i+1 < len(all); i += 2 {
		if i+1 >= len(same) || same[i+1] != all[i+1] {
			out = append(out, all[i], all[i+1])
		}
	}
	return out
}

// Ports are the ranges of --ports.
func Ports(text string) (ports.Ranges, error) {
	asked, err := ports.ParseRanges(text)
	if err != nil {
		return nil, exit.Usagef("--ports: %w", err)
	}
	return asked, nil
}
