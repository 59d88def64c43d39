package prepare

import (
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// agentScore is the agent's own oom_score_adj (proc(5)): the kernel ends the jobs of a host without memory before their
// agents.
const agentScore = -500

// priority is the scheduling that the launcher gave the agent: its jobs get the same.
type priority struct{ oomScore, nice int }

// ownPriority reads the agent's priority before it lowers its score, which its jobs do not inherit: theirs is 0.
func ownPriority() priority {
	var s priority
	if score, ok := oomScore(); ok {
		s.oomScore = max(score, 0)
	}
	const base = 20 // getpriority(2) as the kernel answers it: 20 less the niceness, so that no answer is an error's
	if n, err := unix.Getpriority(unix.PRIO_PROCESS, 0); err == nil {
		s.nice = base - n
	}
	return s
}

const oomScoreFile = "/proc/self/oom_score_adj"

func oomScore() (score int, ok bool) {
	text, err := os.ReadFile(oomScoreFile)
	if err != nil {
		return 0, false
	}
	score, err = strconv.Atoi(strings.TrimSpace(string(text)))
	return score, err == nil
}

// outlast lowers the agent's score if that is permitted; an ordinary user may only raise it.
func outlast() {
	if score, ok := oomScore(); ok && score > agentScore {
		_ = os.WriteFile(oomScoreFile, []byte(strconv.Itoa(agentScore)), 0)
	}
}
