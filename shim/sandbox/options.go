package sandbox

import (
	"cmp"
	"log/slog"

	"github.com/muster-agent/muster/shim/sandbox/seccomp"
)

// Options are what all starts of one guard share.
type Options struct {
	LogDir      string // default of Spec.LogDir
	Logger      *slog.Logger
	RotateBytes int64 // a log file is renamed .1 at this size; 0: 256 MiB, -1: never
	Keep        int   // files of one stream in all, the live one included; 0: 4
	Confine     Confinement
	// Caps are the most capabilities that a process of this guard may have; nil: DefaultCaps.
	Caps *Caps
	// OOMScoreAdj and Nice are those of processes whose Spec has none of its own, as far as the agent is permitted to.
	OOMScoreAdj, Nice int
	// NoNewPrivs forbids set-user-id and file capabilities to give anything (PR_SET_NO_NEW_PRIVS).
	NoNewPrivs bool
	Umask      *uint32 // of all processes that name none; nil: the guard's own
}

func (o Options) withDefaults() (Options, error) {
	o.RotateBytes = max(0, cmp.Or(o.RotateBytes, 256<<20))
	o.Keep = cmp.Or(o.Keep, 4)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Caps == nil {
		o.Caps = new(DefaultCaps)
	}
	var err error
	if c := &o.Confine; c.Unfiltered {
		c.Seccomp = nil
	} else if c.Seccomp == nil {
		c.Seccomp, err = seccomp.Default()
	}
	return o, err
}
