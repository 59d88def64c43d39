package doctor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/registry/consul"
	"github.com/muster-agent/muster/shim/member"
	"github.com/muster-agent/muster/shim/ports"
	"github.com/muster-agent/muster/shim/sandbox"
	"github.com/muster-agent/muster/shim/sandbox/guard"
	"github.com/muster-agent/muster/shim/status"
)

// Checks of things that muster needs.

// guardPatience is the limit for the start of one small process.
const guardPatience = 15 * time.Second

// checkGuard starts this very program under the guard and waits for its end.
func checkGuard(ctx context.Context) Check {
	const name = "guard"
	pid, err := tryGuard(ctx)
	switch {
	case errors.Is(err, guard.ErrNotBuilt):
		return bad(name, "build muster with make build, which needs gcc and a static libc", "%v", err).needed()
	case err != nil:
		return bad(name, "the kernel or a policy (seccomp, noexec memfd) forbids it; ask who runs this host", "%v",
			err).needed()
	}
	return good(name, "started process %d, saw it and all of its tree end", pid).needed()
}

func tryGuard(ctx context.Context) (pid int, err error) {
	ctx, cancel := context.WithTimeout(ctx, guardPatience)
	defer cancel()
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}
	dir, err := os.MkdirTemp("", "muster-doctor-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	g, err := sandbox.Process{}.StartGuard(ctx, sandbox.Options{LogDir: dir})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, g.Close()) }()
	if pid, err = g.Start(sandbox.Spec{
		Attempt: 1, Argv: []string{self, "version"}, Env: os.Environ(),
		Dir: dir,
	}); err != nil {
		return 0, err
	}
	for {
		select {
		case <-ctx.Done():
			return pid, fmt.Errorf("process %d did not end within %s", pid, guardPatience)
		case event, open := <-g.Events():
			if !open {
				return pid, errors.New("the guard ended before its process")
			}
			switch e := event.(type) {
			case sandbox.Empty:
				return pid, nil
			case sandbox.Gone:
				return pid, fmt.Errorf("the guard is gone: %w", e.Err)
			}
		}
	}
}

// checkState makes the state folder and a socket in it.
func checkState(dir status.Dir) Check {
	const name = "state folder"
	remedy := "give --state-dir a folder of this user on a local disk"
	if err := dir.Open(); err != nil {
		return bad(name, remedy, "%v", err).needed()
	}
	path := filepath.Join(string(dir), fmt.Sprintf("doctor-%d.sock", os.Getpid()))
	l, err := status.Listen(path)
	if err != nil {
		return bad(name, remedy+", with a short path", "%v", err).needed()
	}
	if err := l.Close(); err != nil {
		return bad(name, remedy, "%v", err).needed()
	}
	return good(name, "%s takes files and unix sockets", dir).needed()
}

// checkPorts claims one port as an agent would.
func checkPorts(text string) Check {
	const name = "ports"
	remedy := "give --ports FROM-TO another range outside net.ipv4.ip_local_port_range and ip_local_reserved_ports"
	asked, err := ports.ParseRanges(text)
	if err != nil {
		return bad(name, remedy, "%v", err).needed()
	}
	usable, warning, err := ports.Usable(asked, "")
	if err != nil {
		return bad(name, remedy, "%v", err).needed()
	}
	held, err := ports.Claim(usable, []ports.Want{{Name: "doctor"}}, nil)
	if err != nil {
		return bad(name, remedy, "%v", err).needed()
	}
	held.Close()
	if warning != "" {
		return bad(name, remedy, "%s", warning)
	}
	return good(name, "%s, of which %s lie outside the ephemeral range", asked, usable).needed()
}

// checkConsul asks the registry that was named; without a name it looks for one on this host.
func checkConsul(ctx context.Context, o Options) Check {
	const name = "registry"
	if o.RegistryErr != nil {
		return bad(name, "want "+registry.AddressForms, "%v", o.RegistryErr).needed()
	}
	address := o.Registry
	c, err := consul.Open(consul.Config{Address: address})
	if err != nil {
		return bad(name, "want "+registry.AddressForms, "%v", err).needed()
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(ctx, registryPatience)
	defer cancel()
	err = c.Ping(ctx)
	switch {
	case err == nil:
		return checkRights(ctx, c, o)
	case !o.Named:
		return good(name, "none at %s: muster run brings its own, muster agent needs --registry", address)
	case errors.Is(err, registry.ErrForbidden):
		return bad(name, consul.TokenRemedy(""), "%s: %v", address, err).needed()
	case errors.Is(err, registry.ErrTooManyConnections):
		return bad(name, "raise limits.http_max_conns_per_client of that Consul", "%s: %v", address, err).needed()
	}
	return bad(name, member.RegistryRemedyFor(err), "%s: %s", address, strings.TrimSpace(err.Error())).needed()
}

// checkRights tells whether the token of a registry that answers is good for an agent.
func checkRights(ctx context.Context, c *consul.Client, o Options) Check {
	const name = "registry"
	r, err := c.Rights(ctx, o.AppID)
	switch {
	case errors.Is(err, registry.ErrForbidden):
		return bad(name, consul.TokenRemedy(o.AppID), "%s: %v", o.Registry, err).needed()
	case err != nil:
		return bad(name, member.RegistryRemedyFor(err), "%s: %v", o.Registry, err).needed()
	}
	return judged(name, r, o)
}

func judged(name string, r consul.Rights, o Options) Check {
	remedy := consul.TokenRemedy(o.AppID)
	switch {
	case r.Anonymous && !(r.Read && r.Write && r.Sessions):
		return bad(name, remedy, "%s answers, wants a token for app %s, and was given none", o.Registry,
			o.AppID).needed()
	case !r.Read || !r.Write:
		return bad(name, remedy, "%s answers, and its token %s may not write the keys of app %s", o.Registry, r.Name,
			o.AppID).needed()
	case !r.Sessions:
		return bad(name, remedy, "%s answers, and its token %s may not make sessions", o.Registry, r.Name).needed()
	case r.Anonymous && r.Empty && o.AppID == "" && o.Named:
		return bad(name, remedy, "%s answers, wants a token, and was given none", o.Registry).needed()
	case r.Empty && o.AppID == "" && o.Named:
		return bad(name, remedy, "%s answers, and its token %s has neither a policy nor a role", o.Registry,
			r.Name).needed()
	case r.Name != "" && o.AppID == "":
		return good(name, "%s answers; --app-id ID tells whether its token %s is good for an app", o.Registry, r.Name)
	}
	return good(name, "%s answers", o.Registry)
}

// checkACL tells whether the registry lets anybody at the apps' keys: whoever writes them tells agents what to do, and
// whoever reads them has the run's token.
func checkACL(ctx context.Context, o Options) Check {
	const name = "registry acl"
	if o.RegistryErr != nil {
		return good(name, "no registry to look at")
	}
	if path, local := o.Registry.Socket(); local {
		return good(name, "the permissions of %s hold", path)
	}
	ctx, cancel := context.WithTimeout(ctx, registryPatience)
	defer cancel()
	read, write, err := consul.OpenToAll(ctx, o.Registry)
	const remedy = "set acl.enabled and default_policy = \"deny\" in Consul, and give each app a token of its own: " +
		"muster acl APP prints its rules"
	switch {
	case err != nil && !o.Named:
		return good(name, "no registry to look at")
	case err != nil:
		return bad(name, "look at the line registry", "%s: not known: %v", o.Registry, err)
	case write:
		return bad(name, remedy, "%s lets everybody write the keys below muster/: "+
			"who reaches it tells the agents of all apps what to do", o.Registry)
	case read:
		return bad(name, remedy, "%s lets everybody read the keys below muster/: "+
			"who reaches it has the token that agents show each other, reads logs, and in MPI jobs runs programs",
			o.Registry)
	}
	return good(name, "%s permits nothing below muster/ without a token", o.Registry)
}
