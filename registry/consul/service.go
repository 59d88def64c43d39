package consul

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/muster-agent/muster/registry"
)

// ErrNoServices: the registry has no services, as that of `muster run` on one machine.
var ErrNoServices = errors.New("the registry has no services: it is not Consul")

// ErrNoCheck: the Consul agent does not know the service, so its health is unknown.
var ErrNoCheck = errors.New("the Consul agent does not know the service")

// Service is one port of one instance, as Consul's catalog and DNS present it.
type Service struct {
	ID      string // unique over all apps and incarnations
	Name    string
	Tags    []string
	Meta    map[string]string
	Address string // host or IP address, without brackets
	Port    int
}

// Equal tells whether both are the same in Consul.
func (s Service) Equal(o Service) bool {
	return s.ID == o.ID && s.Name == o.Name && s.Address == o.Address && s.Port == o.Port &&
		slices.Equal(s.Tags, o.Tags) && maps.Equal(s.Meta, o.Meta)
}

// Health is the result of a service's own check. Consul's DNS returns passing and warning services. A check that nobody
// has updated is critical, and its service is not returned.
type Health struct {
	Passing bool
	Why     string // text; without a change of the status Consul's servers learn it only within minutes
}

func (h Health) status() string {
	if h.Passing {
		return api.HealthPassing
	}
	return api.HealthWarning
}

// Registered is a service that Consul knows.
type Registered struct {
	Service
	Node string // the Consul agent with which it is registered
	own  bool   // that agent is our own
}

// reapAfter is when Consul removes a service whose check nobody updates; Consul accepts no shorter time.
const reapAfter = time.Minute

// Domain is the domain of this Consul's DNS without a final dot: `consul`, unless its operator set another and the
// token may ask (agent read). The error is ErrNoServices without Consul.
func (c *Client) Domain(ctx context.Context) (string, error) {
	var self struct {
		DebugConfig struct{ DNSDomain string }
		Meta        map[string]string
	}
	err := c.calls.do(ctx, "ask the agent for its domain", func(ctx context.Context) error {
		_, err := c.calls.api.Raw().Query("/v1/agent/self", &self, byDefault.options(ctx))
		return err
	})
	domain := strings.Trim(self.DebugConfig.DNSDomain, ".")
	switch {
	case errors.Is(err, registry.ErrForbidden):
		return registry.DefaultDomain, nil
	case err != nil:
		return "", err
	case self.Meta["muster-registry"] != "":
		return "", ErrNoServices
	case domain == "":
		return registry.DefaultDomain, nil
	}
	return domain, nil
}

// Register registers a service, or a change of it, with our Consul agent. It counts as dead when nobody has called
// Speak for ttl, and is removed a minute later. The catalog knows it a moment later (Seen).
func (c *Client) Register(ctx context.Context, s Service, h Health, ttl time.Duration) error {
	service := api.AgentServiceRegistration{
		ID: s.ID, Name: s.Name, Tags: s.Tags, Meta: s.Meta, Address: s.Address, Port: s.Port,
		Check: &api.AgentServiceCheck{
			// The text reaches the servers at once only with a change of the status: so start with warning.
			CheckID: checkOf(s.ID), Name: "muster agent", TTL: ttl.String(), Status: api.HealthWarning,
			Notes: "passing: something listens at the port; warning: nothing does; " +
				"critical: the instance's agent is silent",
			DeregisterCriticalServiceAfter: reapAfter.String(),
		},
	}
	err := c.calls.do(ctx, "register service "+s.Name, func(ctx context.Context) error {
		return c.calls.api.Agent().ServiceRegisterOpts(&service,
			api.ServiceRegisterOpts{ReplaceExistingChecks: true}.WithContext(ctx))
	})
	if err != nil {
		return err
	}
	return c.Speak(ctx, s.ID, h)
}

// Speak updates the health of a service, which keeps it alive for another ttl. On ErrNoCheck register it again.
func (c *Client) Speak(ctx context.Context, id string, h Health) error {
	body := map[string]string{"Status": h.status(), "Output": h.Why}
	err := c.calls.put(ctx, c.times.Request, "keep service "+id, "/v1/agent/check/update/"+checkOf(id), body, nil)
	return unknown(err, ErrNoCheck)
}

// Deregister removes one of our own services. A missing service is no error.
func (c *Client) Deregister(ctx context.Context, id string) error {
	err := c.calls.put(ctx, c.times.Request, "deregister service "+id, "/v1/agent/service/deregister/"+id, nil, nil)
	return unknown(err, nil)
}

func checkOf(id string) string { return "service:" + id }

// unknown replaces the answer that a name does not exist by instead.
func unknown(err, instead error) error {
	status, ok := errors.AsType[api.StatusError](err)
	if ok && status.Code == http.StatusNotFound {
		return instead
	}
	return err
}

// Services are those of a name that have the tag: our Consul agent's own, and those that the catalog has from others. A
// token that may not read nodes sees only the former.
func (c *Client) Services(ctx context.Context, name, tag string) ([]Registered, error) {
	var all []Registered
	err := c.calls.do(ctx, "list services", func(ctx context.Context) error {
		own, err := c.calls.api.Agent().ServicesWithFilterOpts(fmt.Sprintf("Service == %q and %q in Tags", name, tag),
			byDefault.options(ctx))
		for _, id := range slices.Sorted(maps.Keys(own)) {
			s := own[id]
			all = append(all, Registered{Service{s.ID, s.Service, s.Tags, s.Meta, s.Address, s.Port}, "", true})
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	err = c.calls.do(ctx, "list service "+name, func(ctx context.Context) error {
		others, _, err := c.calls.api.Catalog().Service(name, tag, byDefault.options(ctx))
		for _, s := range others {
			known := slices.IndexFunc(all, func(o Registered) bool { return o.ID == s.ServiceID })
			if known >= 0 {
				all[known].Node = s.Node
				continue
			}
			all = append(all, Registered{Service{
				s.ServiceID, s.ServiceName, s.ServiceTags, s.ServiceMeta,
				s.ServiceAddress, s.ServicePort,
			}, s.Node, false})
		}
		return err
	})
	return all, err
}

// Reap removes a service of an agent that is proved dead. If another Consul agent holds the service, that agent
// restores it as critical when it syncs with its servers, and removes it later; DNS no longer returns it.
func (c *Client) Reap(ctx context.Context, s Registered) error {
	if s.own {
		return c.Deregister(ctx, s.ID)
	}
	body := map[string]string{"Node": s.Node, "ServiceID": s.ID}
	return c.calls.put(ctx, callTime, "take service "+s.ID+" away", "/v1/catalog/deregister", body, nil)
}

// Seen tells whether the catalog has the service as it was registered, so that DNS knows it. The tag, one of the
// service's, keeps the answer short if the name has many instances. blind: this token lacks the right to read nodes.
func (c *Client) Seen(ctx context.Context, s Service, tag string) (seen, blind bool, err error) {
	err = c.calls.do(ctx, "look for service "+s.Name, func(ctx context.Context) error {
		all, meta, err := c.calls.api.Catalog().Service(s.Name, tag, byDefault.options(ctx))
		if err != nil {
			return err
		}
		seen = slices.ContainsFunc(all, func(o *api.CatalogService) bool {
			return s.Equal(Service{
				o.ServiceID, o.ServiceName, o.ServiceTags, o.ServiceMeta, o.ServiceAddress,
				o.ServicePort,
			})
		})
		blind = !seen && meta.ResultsFilteredByACLs
		return nil
	})
	return seen, blind, err
}
