package main

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
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
	flags.StringVar(&f.address, "registry", "", "consul://HOST:PORT, consul+tls://HOST:PORT or unix:PATH (default: CONSUL_HTTP_ADDR, else consul://127.0.0.1:8500)")
	flags.DurationVar(&f.ttl, "session-ttl", 10*time.Second, "time to live of an agent's session")
	flags.DurationVar(&f.lost, "lost-grace", time.Minute, "a member that vanished without proof of its death is lost after this")
	flags.DurationVar(&f.lostMass, "lost-mass", 10*time.Minute, "the same while more than half of the gang is away; an outage of the registry may last 30s less")
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

// resolve is the address in our own form.
func (f *registryFlags) resolve() string {
	if f.address != "" {
		return f.address
	}
	addr := os.Getenv("CONSUL_HTTP_ADDR")
	switch {
	case addr == "":
		return "consul://127.0.0.1:8500"
	case strings.HasPrefix(addr, "unix://"):
		return "unix:" + strings.TrimPrefix(addr, "unix://")
	case strings.HasPrefix(addr, "https://"):
		return "consul+tls://" + strings.TrimPrefix(addr, "https://")
	case strings.HasPrefix(addr, "http://"):
		return "consul://" + strings.TrimPrefix(addr, "http://")
	case os.Getenv("CONSUL_HTTP_SSL") == "true" || os.Getenv("CONSUL_HTTP_SSL") == "1":
		return "consul+tls://" + addr
	}
	return "consul://" + addr
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
	c, err := consul.Open(consul.Config{Address: f.resolve(), Times: t, Logger: log})
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
