package flags

import (
	"cmp"

	"github.com/muster-agent/muster/shim/policy"
)

// Policy says which policy of the host's operator holds, and what the command line chooses where it leaves a choice.
type Policy struct {
	File   string // "": the host's own
	Userns string // private or host; "": as the policy has it
}

// Register adds the flags.
func (f *Policy) Register(flags Set) {
	flags.StringVar(&f.File, "policy", "",
		"policy `FILE` of this host's operator (default: "+policy.DefaultFile+")")
	flags.StringVar(&f.Userns, "userns", "",
		"ids of a root agent's processes: private or host (default: as the policy has it)")
}

// Given tells whether one of the flags was given.
func (f *Policy) Given() bool { return *f != Policy{} }

// Read reads the policy.
func (f *Policy) Read() (policy.Policy, error) {
	p, err := policy.Read(cmp.Or(f.File, policy.DefaultFile), f.File != "")
	if err != nil {
		return p, err
	}
	return p.WithUserns(f.Userns)
}

// Args are the same choices as arguments for an agent.
func (f *Policy) Args() []string {
	var out []string
	if f.File != "" {
		out = append(out, "--policy", f.File)
	}
	if f.Userns != "" {
		out = append(out, "--userns", f.Userns)
	}
	return out
}
