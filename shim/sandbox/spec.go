package sandbox

import (
	"cmp"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

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
	Umask *uint32 // nil: the guard's own
	// Linger says that Argv may be a starter: it leaves a daemon behind and exits with 0. Then the event Lingers asks
	// for Adopt, Finish or Kill.
	Linger bool
	// Stdin, when set, is what it reads in place of nothing; Stdout gets what it writes, in place of the log, whose file then
	// stays empty. They remain the caller's, who may close them once Start has returned.
	Stdin, Stdout *os.File
}

// Unlimited is the value of a resource limit that is none.
const Unlimited = math.MaxUint64

// Exit is how the main process ended. Nothing is flattened: either Code or Signal says it. Neither does when nobody saw
// it: the guard was lost, or the process was adopted and another, its parent to the end, got its status.
type Exit struct {
	Code    *int // its own code, nil when a signal ended it
	Signal  int  // 0: none
	At      time.Time
	Core    bool  // a core was dumped
	MaxRSS  int64 // bytes; of the largest process that it waited for, itself included
	Usage   Usage // what the boundary counted in this start
	Message string
	// Starter says that this is the exit of a starter that had left something behind. What it left is gone, or is being
	// killed; how it ended is not known.
	Starter bool
}

func exitOf(status syscall.WaitStatus, at time.Time, maxRSS int64) Exit {
	e := Exit{At: at, MaxRSS: maxRSS}
	if status.Signaled() {
		e.Signal, e.Core = int(status.Signal()), status.CoreDump()
		e.Message = "ended by " + signalName(status.Signal())
		return e
	}
	code := status.ExitStatus()
	e.Code, e.Message = &code, "exit code "+strconv.Itoa(code)
	return e
}

func signalName(s syscall.Signal) string {
	if name := unix.SignalName(s); name != "" {
		return name
	}
	return "signal " + strconv.Itoa(int(s))
}

func (s Spec) payload(o Options) (guard.Payload, error) {
	dir, err := filepath.Abs(s.Dir)
	if err != nil {
		return guard.Payload{}, err
	}
	p := guard.Payload{
		Linger: s.Linger, Stdin: s.Stdin != nil, Stdout: s.Stdout != nil,
		Argv: s.Argv, Env: s.Env, Dir: dir,
		RotateBytes: uint64(o.RotateBytes), Keep: uint32(o.Keep),
		OOMScoreAdj: int32(cmp.Or(s.OOMScoreAdj, o.OOMScoreAdj)), Nice: int32(cmp.Or(s.Nice, o.Nice)), User: cmp.Or(s.User, o.Confine.User),
		Caps: within(s.Caps, o.Caps), NoNewPrivs: o.NoNewPrivs, Umask: s.Umask, Filter: o.Confine.Seccomp,
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
