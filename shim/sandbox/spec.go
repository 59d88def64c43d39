package sandbox

import (
	"cmp"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"

	"github.com/muster-agent/muster/shim/sandbox/guard"
)

// Spec is one start.
type Spec struct {
	Attempt int      // number of this start; every event of it carries it
	Argv    []string // a name without a slash is looked up in the PATH of Env
	Env     []string // NAME=value, whole: nothing is inherited
	Dir     string   // working directory
	LogDir  string   // holds stdout.log and stderr.log; "": that of Options
	Rlimits map[string]Rlimit
	// OOMScoreAdj and Nice are set as far as the agent is permitted to; 0: those of Options.
	OOMScoreAdj int
	Nice        int
	User        *guard.User // nil: that of Options.Confine, else the agent's own
	// Caps are the most capabilities that it may have, within those of Options; nil: those. Only root has any.
	Caps  *Caps
	Umask *uint32 // nil: that of Options
	// Linger says that Argv may be a starter, which leaves a daemon behind, here or elsewhere, and exits with 0. Then
	// the event Lingers asks for Adopt, Finish or Kill.
	Linger bool
	// Stdin, when set, is what the process reads; without it, it reads nothing. Stdout, when set, gets what the process
	// writes, and the log stays empty. They remain the caller's, who may close them once Start has returned.
	Stdin, Stdout *os.File
}

// Unlimited is the value of a resource limit that is none.
const Unlimited = math.MaxUint64

func (s Spec) payload(o Options) (guard.Payload, error) {
	dir, err := filepath.Abs(s.Dir)
	if err != nil {
		return guard.Payload{}, err
	}
	p := guard.Payload{
		Linger: s.Linger, Stdin: s.Stdin != nil, Stdout: s.Stdout != nil,
		Argv: s.Argv, Env: s.Env, Dir: dir,
		RotateBytes: uint64(o.RotateBytes), Keep: uint32(o.Keep),
		OOMScoreAdj: int32(cmp.Or(s.OOMScoreAdj, o.OOMScoreAdj)), Nice: int32(cmp.Or(s.Nice, o.Nice)),
		User: cmp.Or(s.User, o.Confine.User),
		Caps: within(s.Caps, o.Caps), NoNewPrivs: o.NoNewPrivs, Umask: cmp.Or(s.Umask, o.Umask),
		Filter: o.Confine.Seccomp,
	}
	for name, limit := range s.Rlimits {
		at := slices.Index(rlimitNames, name)
		if at < 0 {
			return guard.Payload{}, fmt.Errorf("limit %q: want one of %v", name, rlimitNames)
		}
		p.Limits = append(p.Limits, guard.Limit{Resource: uint64(at), Soft: limit.Soft, Hard: limit.Hard})
	}
	slices.SortFunc(p.Limits, func(a, b guard.Limit) int { return int(a.Resource) - int(b.Resource) })
	return p, nil
}
