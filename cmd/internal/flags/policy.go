package flags

import (
	"cmp"
	"os"

	"github.com/muster-agent/muster/shim/policy"
)

// Policy says which policy of the host's operator holds, and what the command line chooses where it leaves a choice.
type Policy struct {
	File   string // "": the host's own
	Userns string // private or host; "": as the policy has it
	// History is where the run is kept after its end, and HistoryLogs which logs of it; the policy comes first.
	History, HistoryLogs string
}

// Register adds the flags.
func (f *Policy) Register(flags Set) {
	flags.StringVar(&f.File, "policy", "",
		"policy `FILE` of this host's operator (default: "+policy.DefaultFile+")")
	flags.StringVar(&f.Userns, "userns", "",
		"ids of a root agent's processes: private or host (default: as the policy has it)")
}

// RegisterHistory adds the flags of verbs that run something.
func (f *Policy) RegisterHistory(flags Set) {
	flags.StringVar(&f.History, "history", "",
		"`URL` of the folder to keep the run in after its end (default: the policy's, "+HistoryVariable+")")
	flags.StringVar(&f.HistoryLogs, "history-logs", "", "logs to keep there: none, failed or all (default: none)")
}

// HistoryVariable names a history store for verbs that have no flag for it.
const HistoryVariable = "MUSTER_HISTORY"

// Given tells whether one of the flags was given.
func (f *Policy) Given() bool { return *f != Policy{} }

// Read reads the policy.
func (f *Policy) Read() (policy.Policy, error) {
	p, err := policy.Read(cmp.Or(f.File, policy.DefaultFile), f.File != "")
	if err != nil {
		return p, err
	}
	if p, err = p.WithUserns(f.Userns); err != nil {
		return p, err
	}
	if f.History == "" {
		return p.WithHistory(HistoryVariable, os.Getenv(HistoryVariable), f.HistoryLogs)
	}
	return p.WithHistory("--history", f.History, f.HistoryLogs)
}

// Args are the same choices as arguments for an agent.
func (f *Policy) Args() []string {
	var out []string
	for _, one := range [][2]string{
		{"--policy", f.File}, {"--userns", f.Userns}, {"--history", f.History}, {"--history-logs", f.HistoryLogs},
	} {
		if one[1] != "" {
			out = append(out, one[:]...)
		}
	}
	return out
}
