package process

import (
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/fault"
	"github.com/muster-agent/muster/shim/plan"
)

// secrets adds the values of the definition's secrets to the facts of one start, and writes them as files.
func (p *Process) secrets(facts *plan.StartFacts) error {
	values, err := p.Secrets(p.Plan.Process.SecretRefs)
	if fault.Is(err, registry.ClassNotPermitted) {
		return err
	}
	if err != nil {
		return fault.Definition(err)
	}
	facts.Secrets = values
	if p.Secret != nil {
		p.Secret(values)
	}
	if p.SecretFiles != nil {
		facts.SecretDir, err = p.SecretFiles(values)
	}
	return err
}
