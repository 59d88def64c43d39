package conductor

import (
	"fmt"
	"strconv"
	"time"

	"github.com/muster-agent/muster/registry"
)

const namedMissing = 10 // how many instances a sentence names

// standing says where an instance stands that is waited for.
func standing(a *absence) string {
	m := &a.rec
	if m.Inc == "" {
		return "never joined"
	}
	switch m.Phase {
	case registry.PhaseJoined:
		return "joined on " + place(m.Member) + ", still staging"
	case registry.PhaseReady:
		return fmt.Sprintf("on %s, still in generation %d", place(m.Member), m.Gen)
	case registry.PhaseEnded:
		return "ended, its agent is gone"
	case registry.PhaseFailed:
		return "failed on " + place(m.Member)
	case registry.PhaseLost:
		return "lost with " + place(m.Member)
	case registry.PhaseLeft:
		return "left, not replaced"
	}
	return string(m.Phase)
}

func place(m registry.Member) string {
	if m.Host != "" {
		return m.Host
	}
	if m.Addr != "" {
		return m.Addr
	}
	return "an unknown host"
}

func plural(n int) string {
	if n == 1 {
		return ""
	}
	return "s"
}

// seconds prints a duration as users write it in the definition.
func seconds(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'g', -1, 64) + " s" }

// signalName is the Linux name of the signals that end processes.
func signalName(n int) string {
	switch n {
	case 1:
		return "SIGHUP"
	case 2:
		return "SIGINT"
	case 3:
		return "SIGQUIT"
	case 4:
		return "SIGILL"
	case 6:
		return "SIGABRT"
	case 7:
		return "SIGBUS"
	case 8:
		return "SIGFPE"
	case 9:
		return "SIGKILL"
	case 11:
		return "SIGSEGV"
	case 13:
		return "SIGPIPE"
	case 15:
		return "SIGTERM"
	}
	return "signal " + strconv.Itoa(n)
}
