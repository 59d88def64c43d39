package member

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/registry/consul"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/wait"
)

// RegistryRemedyFor mends a registry that does not answer for this reason. A name that the resolver does not know is no
// matter of Consul's.
func RegistryRemedyFor(err error) string {
	if d, ok := errors.AsType[*net.DNSError](err); ok && d.IsNotFound {
		return "no host is called " + d.Name + " here: correct --registry, or make the name known to this host"
	}
	return "start Consul there, or give --registry the right address"
}

// How long an agent waits for the registry at its start.
const (
	StartPatience = 15 * time.Second
	startPoll     = 300 * time.Millisecond
)

// AwaitRegistry waits until the registry at that address answers: it may be started together with its gang.
func AwaitRegistry(ctx context.Context, client *consul.Client, address registry.Address, log *slog.Logger) error {
	ctx, cancel := context.WithTimeout(ctx, StartPatience)
	defer cancel()
	var last error // the end of our own patience is no cause
	for {
		err := client.Ping(ctx)
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			last = cmp.Or(last, err)
			err = fmt.Errorf("registry %s: %w; %s", address, last, RegistryRemedyFor(last))
			return exit.With(exit.Registry, err)
		case !errors.Is(err, registry.ErrUnreachable):
			return exit.OfRegistry(fmt.Errorf("registry %s: %w", address, err))
		case last == nil:
			log.Warn("registry does not answer yet, waiting",
				"registry", address, "patience", StartPatience, "err", err, "remedy", RegistryRemedyFor(err))
		}
		last = err
		_ = wait.For(ctx, startPoll) // the next round sees that it ended
	}
}

// DNS says whether something answers DNS for the registry's services.
type DNS struct {
	Domain string // where Consul answers; "": nobody has asked
	None   bool   // nothing does: the registry is not Consul
}

// FindDNS asks the registry, for an app whose members are written by name.
func FindDNS(ctx context.Context, client *consul.Client, app *appdef.App, log *slog.Logger) (DNS, error) {
	if app.Settings.Address != appdef.AddressDNS {
		return DNS{}, nil
	}
	domain, err := client.Domain(ctx)
	switch {
	case errors.Is(err, consul.ErrNoServices):
		log.Warn("members are written by their hosts' addresses", "cause", "muster.address=dns: "+err.Error())
		return DNS{None: true}, nil
	case err != nil:
		return DNS{}, exit.OfRegistry(err)
	}
	return DNS{Domain: domain}, nil
}
