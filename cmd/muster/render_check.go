package main

import (
	"os"
	"regexp"
	"strings"

	"github.com/muster-agent/muster/cmd/internal/flags"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/prepare"
)

// check refuses what the agents would: they would be started again and again, and say so on other hosts.
func (f *renderFlags) check(launcher string) error {
	if _, err := f.registry.Times(); err != nil {
		return err
	}
	if err := checkRegistry(&f.registry, launcher); err != nil {
		return err
	}
	return f.agent.check()
}

// checkRegistry tells of an address that no agent can use there. Whether something answers at it is seen from the hosts alone.
func checkRegistry(f *flags.Registry, launcher string) error {
	address, err := f.Resolve()
	if err != nil {
		return err
	}
	from := ""
	if f.Address == "" && os.Getenv("CONSUL_HTTP_ADDR") != "" {
		from = "CONSUL_HTTP_ADDR: "
	}
	if _, socket := address.Socket(); socket && !clientOf(launcher).OneHost {
		return exit.Usagef("%sregistry %s: it is a socket of one host, and %s starts agents on many: want consul://HOST:PORT or consul+tls://HOST:PORT, "+
			"or consul://127.0.0.1:8500 where each host has an agent of Consul", from, address, launcher)
	}
	return nil
}

// variableForm is that of muster.env.NAME.
var variableForm = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

func (a *renderAgentFlags) check() error {
	if a.engine != "" {
		if err := prepare.CheckEngine(a.engine); err != nil {
			return err
		}
	}
	if a.ports != "" {
		if _, err := portsFlag(a.ports); err != nil {
			return err
		}
	}
	for _, one := range a.env {
		if name, _, _ := strings.Cut(one, "="); !variableForm.MatchString(name) || strings.HasPrefix(name, "MUSTER_") {
			return exit.Usagef("--env %q: want NAME or NAME=VALUE, with a NAME of letters, digits and _ that does not begin with a digit or MUSTER_", one)
		}
	}
	return nil
}
