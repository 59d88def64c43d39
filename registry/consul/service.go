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

// ErrNoServices: the registry has no services, as the one of `muster run` on one machine.
var ErrNoServices = errors.New("the registry has no services: it is not Consul")

// ErrNoCheck: the Consul agent does not know the service (any more), so that nothing can be said of its health.
var ErrNoCheck = errors.New("the Consul agent does not know the service")

// Service is one port of one instance, as others find it in Consul's catalog and by DNS.
type Service struct {
	ID      string // of this service alone, over all apps and incarnations
	Name    string
	Tags    []string
	Meta    map[string]string
	Address string // host or IP address, without brackets
	Port    int
}

// Equal tells whether nothing would change in Consul.
func (s Service) Equal(o Service) bool {
	return s.ID == o.ID && s.Name == o.Name && s.Address == o.Address && s.Port == o.Port &&
		slices.Equal(s.Tags, o.Tags) && maps.Equal(s.Meta, o.Meta)
}

// Health is what a service's own check says. Consul's DNS gives out both kinds; one that nobody has spoken for is
// critical and is not given out.
type Health struct {
	Passing bool
	Why     string // in words; with an unchanged status Consul's servers learn them within minutes only
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
	Node string // whose Consul agent it is registered with
	own  bool   // that agent is the one that we talk to
}

// reapAfter is when Consul takes a service away for which nobody speaks any more; it knows no shorter time.
const reapAfter = time.Minute

// Domain is where this Consul answers DNS, without a dot at its end: `consul`, unless its operator says otherwise or
// the token may not ask (agent read). The error is ErrNoServices where there is no Consul.
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

// Register tells the Consul agent that we talk to of a service, or of a change of it. It counts as dead when nobody has
// called Speak for ttl, and is taken away a minute after that. The catalog knows it a moment later (Seen).
func (c *Client) Register(ctx context.Context, s Service, h Health, ttl time.Duration) error {
	service := api.AgentServiceRegistration{
		ID: s.ID, Name: s.Name, Tags: s.Tags, Meta: s.Meta, Address: s.Address, Port: s.Port,
		Check: &api.AgentServiceCheck{
			// Words reach the servers at once only with a change of the status: warning comes first.
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

// Speak says how a service is, which keeps it alive for another ttl. ErrNoCheck: it has to be registered again.
func (c *Client) Speak(ctx context.Context, id string, h Health) error {
	body := map[string]string{"Status": h.status(), "Output": h.Why}
	err := c.calls.put(ctx, c.times.Request, "keep service "+id, "/v1/agent/check/update/"+checkOf(id), body, nil)
	return unknown(err, ErrNoCheck)
}

// Deregister takes a service of our own away. One that is not there is no error.
func (c *Client) Deregister(ctx context.Context, id string) error {
	err := c.calls.put(ctx, c.times.Request, "deregister service "+id, "/v1/agent/service/deregister/"+id, nil, nil)
	return unknown(err, nil)
}

func checkOf(id string) string { return "service:" + id }

// unknown turns the answer that nothing of that name is there into instead.
func unknown(err, instead error) error {
	status, ok := errors.AsType[api.StatusError](err)
	if ok && status.Code == http.StatusNotFound {
		return instead
	}
	return err
}

// Services are those of a name that have the tag: what the Consul agent that we talk to has been told, and what the
// catalog has of others. A token that may not read nodes sees the former only.
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
			all = append(all, Registered{Service{s.ServiceID, s.ServiceName, s.ServiceTags, s.ServiceMeta,
				s.ServiceAddress, s.ServicePort}, s.Node, false})
		}
		return err
	})
	return all, err
}

// Reap takes away what an agent that is proved dead has left. What another Consul agent holds comes back as critical
// when that agent compares notes with its servers, until it takes it away itself; DNS gives it out no more.
func (c *Client) Reap(ctx context.Context, s Registered) error {
	if s.own {
		return c.Deregister(ctx, s.ID)
	}
	body := map[string]string{"Node": s.Node, "ServiceID": s.ID}
	return c.calls.put(ctx, callTime, "take service "+s.ID+" away", "/v1/catalog/deregister", body, nil)
}

// Seen tells whether the catalog has the service as it was registered, so that DNS knows it; the tag, one of the
// service's, keeps the answer short where the name has many instances. blind: this token may not look (it lacks the
// right to read nodes).
func (c *Client) Seen(ctx context.Context, s Service, tag string) (seen, blind bool, err error) {
	err = c.calls.do(ctx, "look for service "+s.Name, func(ctx context.Context) error {
		all, meta, err := c.calls.api.Catalog().Service(s.Name, tag, byDefault.options(ctx))
		if err != nil {
			return err
		}
		seen = slices.ContainsFunc(all, func(o *api.CatalogService) bool {
			return s.Equal(Service{o.ServiceID, o.ServiceName, o.ServiceTags, o.ServiceMeta, o.ServiceAddress,
				o.ServicePort})
		})
		blind = !seen && meta.ResultsFilteredByACLs
		return nil
	})
	return seen, blind, err
}
