package main

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/registry/consul"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/status"
)

// registryFlags say which registry and with what times.
type registryFlags struct {
	address  string
	ttl      time.Duration
	lost     time.Duration
	lostMass time.Duration
	barrier  time.Duration
}

// flagSet is what a verb's flags are added to.
type flagSet interface {
	BoolVar(p *bool, name string, value bool, usage string)
	DurationVar(p *time.Duration, name string, value time.Duration, usage string)
	IntVar(p *int, name string, value int, usage string)
	StringVar(p *string, name, value, usage string)
	StringArrayVar(p *[]string, name string, value []string, usage string)
	MarkHidden(name string) error
}

func (f *registryFlags) register(flags flagSet) {
	flags.StringVar(&f.address, "registry", "", registry.AddressForms+" (default: CONSUL_HTTP_ADDR, else consul://127.0.0.1:8500)")
	t := registry.DefaultTimes()
	flags.DurationVar(&f.ttl, "session-ttl", t.TTL, "time to live of an agent's session")
	flags.DurationVar(&f.lost, "lost-grace", t.Lost, "a member that vanished without proof of its death is lost after this")
	flags.DurationVar(&f.lostMass, "lost-mass", t.LostMass, "the same while more than half of the gang is away; an outage of the registry may last 30s less")
	flags.DurationVar(&f.barrier, "barrier-timeout", 0, "longest wait for the gang (default: muster.barrier.timeout, 30m)")
}

// args are the same settings as arguments for an agent.
func (f *registryFlags) args() []string {
	out := []string{"--session-ttl", f.ttl.String(), "--lost-grace", f.lost.String(), "--lost-mass", f.lostMass.String()}
	if f.barrier > 0 {
		out = append(out, "--barrier-timeout", f.barrier.String())
	}
	return out
}

// named tells that a flag or a variable names the registry.
func (f *registryFlags) named() bool { return f.address != "" || os.Getenv("CONSUL_HTTP_ADDR") != "" }

// resolve is the registry that the flag names, else CONSUL_HTTP_ADDR, else Consul's agent on this host.
func (f *registryFlags) resolve() (registry.Address, error) {
	if f.address != "" {
		at, err := registry.ParseAddress(f.address)
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

// times checks the protocol's inequalities.
func (f *registryFlags) times() (registry.Times, error) {
	t := registry.DefaultTimes()
	t.TTL, t.Lost, t.LostMass = f.ttl, f.lost, f.lostMass
	if f.barrier < 0 {
		return t, exit.Usagef("--barrier-timeout %s: want a duration above 0, such as 30m", f.barrier)
	}
	if f.barrier > 0 {
		t.Barrier = f.barrier
	}
	if err := errors.Join(t.Check()...); err != nil {
		return t, exit.With(exit.Usage, err)
	}
	return t, nil
}

func (f *registryFlags) open(log *slog.Logger) (*consul.Client, registry.Times, error) {
	t, err := f.times()
	if err != nil {
		return nil, t, err
	}
	at, err := f.resolve()
	if err != nil {
		return nil, t, err
	}
	c, err := consul.Open(consul.Config{Address: at, Times: t, Logger: log})
	if err != nil {
		return nil, t, exit.With(exit.Usage, err)
	}
	return c, t, nil
}

// stateFlags say where this host's state lies.
type stateFlags struct{ dir string }

func (f *stateFlags) register(flags flagSet) {
	flags.StringVar(&f.dir, "state-dir", "", "folder of this host's state (default: /run/muster for root)")
}

func (f *stateFlags) resolve() status.Dir {
	if f.dir != "" {
		return status.Dir(absolute(f.dir))
	}
	return status.Dir(status.StateDir(os.Geteuid(), os.Getenv("XDG_RUNTIME_DIR")))
}

func absolute(path string) string {
	abs, err := filepath.Abs(path)
	if err != nil {
		return path
	}
	return abs
}
