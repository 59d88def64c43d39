package job

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// State is how a job stands, as its launcher tells it.
type State struct {
	Word string // the launcher's own
	// The launcher runs nothing of it and will start nothing again; of Nomad also: no allocation of it is left.
	Over bool
	OK   bool   // of one that is over: the launcher counts it a success
	Why  string // what it says beside that: why nothing is placed, how it failed; empty: nothing
	// Futile: it starts an agent again and again that has ended with a code that says that this is of no use.
	Futile bool
}

// Together is over when all are, and good when all are.
func Together(states []State) State {
	all := State{Over: true, OK: true}
	var words, whys []string
	for _, s := range states {
		all.Over, all.OK = all.Over && s.Over, all.OK && s.OK
		if !slices.Contains(words, s.Word) {
			words = append(words, s.Word)
		}
		if s.Why != "" && !slices.Contains(whys, s.Why) {
			whys = append(whys, s.Why)
		}
	}
	all.Word, all.Why = strings.Join(words, ", "), strings.Join(whys, "; ")
	return all
}

// ErrRuns is a job of that name that the launcher runs already.
var ErrRuns = errors.New("runs there already")

// ErrForeign is something of that name that muster did not write. It is neither replaced nor deleted.
var ErrForeign = errors.New("is not what muster wrote for this app")

// ErrUnreachable is an API that does not answer, or a client that is not there.
var ErrUnreachable = errors.New("cannot be reached")

// ErrRefused is a launcher that does not want the job, or not from us.
var ErrRefused = errors.New("refused")

// ErrUnknown is a job that was sent and perhaps taken: the answer did not come, or says too little.
var ErrUnknown = errors.New("it is not known whether it was started")

// sent is what the launcher's answer to a job means; nil: it has taken it.
func sent(err error) error {
	if err == nil || errors.Is(err, ErrRefused) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrUnknown, err)
}
