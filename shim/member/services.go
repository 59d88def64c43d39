package member

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/registry/consul"
	"github.com/muster-agent/muster/shim/machine"
	"github.com/muster-agent/muster/shim/plan"
	"github.com/muster-agent/muster/shim/ports"
)

// wanted are the services that there should be in this state.
func (d *discovery) wanted(s machine.State) []consul.Service {
	if d.over || s.CutOff {
		return nil
	}
	switch s.Phase {
	case machine.Running:
		if !s.Up && !d.named {
			return nil
		}
	case machine.Installed, machine.Waiting, machine.Stopping, machine.Backoff:
		if !d.named { // no peer goes by its name while it does not run
			return nil
		}
	case machine.Starting, machine.Claiming, machine.Standby, machine.Staging, machine.Holding, machine.Fenced,
		machine.Finishing, machine.Leaving, machine.Superseded, machine.Done:
		return nil
	}
	var all []consul.Service
	for i, e := range plan.Endpoints(d.plan, d.cfg.host, d.cfg.ports()) {
		all = append(all, d.service(i, e, s))
	}
	return all
}

// indexTag is the tag that all services of an index have.
func indexTag(index int) string { return "index-" + strconv.Itoa(index) }

// mostMeta is how long a value of a service's meta may be, in bytes.
const mostMeta = 512

func (d *discovery) service(i int, e plan.Endpoint, s machine.State) consul.Service {
	who, as := d.plan.Who, d.plan.Discovery
	id := fmt.Sprintf("%s-%d-%s", as.Service, who.Index, d.cfg.inc)
	if i > 0 {
		id += "-" + strconv.Itoa(i)
	}
	// The process's own, and not of the directive that may have it end: nobody waits for a service, which belongs to
	// all.
	generation := s.Gen
	if s.Policy.Service {
		generation = s.Directive.Gen
	}
	tags := []string{indexTag(who.Index), "generation-" + strconv.Itoa(generation)}
	if e.Member {
		tags = append([]string{as.Tag}, tags...)
	}
	for _, name := range e.Exports {
		if tag := registry.Label(name[strings.LastIndexByte(name, '.')+1:]); tag != "" && !slices.Contains(tags, tag) {
			tags = append(tags, tag)
		}
	}
	meta := map[string]string{
		"external-source": "muster", "app": d.cfg.appID, "run": cmp.Or(s.Run, d.cfg.run), "component": who.Component,
		"index": strconv.Itoa(who.Index), "role": who.Role, "rank": strconv.Itoa(who.Rank),
		"generation": strconv.Itoa(generation), "incarnation": d.cfg.inc,
		"export": strings.Join(e.Exports, " "), "value": strings.Join(e.Values, " "),
	}
	for name, value := range meta {
		meta[name] = value[:min(len(value), mostMeta)]
	}
	return consul.Service{ID: id, Name: as.Service, Tags: tags, Meta: meta, Address: d.cfg.host, Port: e.Port}
}

// health looks whether a process listens at the port, without connecting to it.
func (d *discovery) health(s machine.State, port int) consul.Health {
	if s.Phase != machine.Running {
		return consul.Health{Why: "the process does not run: " + string(s.Phase)}
	}
	listening, err := ports.Listening("/proc", port)
	switch {
	case err != nil:
		return consul.Health{Why: err.Error()}
	case listening:
		return consul.Health{Passing: true, Why: "listens at port " + strconv.Itoa(port)}
	}
	return consul.Health{Why: "nothing listens at port " + strconv.Itoa(port)}
}
