package shim

import (
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/plan"
	"github.com/muster-agent/muster/shim/prepare"
)

// request is the question for a plan of an instance.
func (a *agent) request(in registry.Instance) plan.Request {
	request := plan.Request{
		AppID: a.id.appID, Run: a.id.run, Starts: true, Digest: a.digest, Component: in.Component, Index: in.Index,
		Allocation: a.alloc, Origins: a.origins, Instances: a.member.Counts(),
		Engine: prepare.EngineChoice(a.engine, a.policy),
		HostFacts: plan.HostFacts{
			Inherited: a.env, Given: a.envGiven, Shell: prepare.Shell(), HostRoot: prepare.RootOfHost(),
			Hadoop: a.hadoopFound, MemoryMB: prepare.HostMemoryMB(),
		},
	}
	request.Domain, request.NoDNS = a.dns.Domain, a.dns.None
	a.filesystem.Into(&request)
	return request
}
