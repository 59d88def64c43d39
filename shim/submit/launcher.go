package submit

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
)

// State is how a job stands, as its launcher tells it.
type State struct {
	Word string // the launcher's own
	Over bool   // nothing of it runs or will be started again
	OK   bool   // of one that is over: the launcher counts it a success
	Why  string // what it says beside that: why nothing is placed, how it failed; empty: nothing
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

// command runs a launcher's client and gives what it says on stdout.
func command(ctx context.Context, stdin string, words ...string) (string, error) {
	cmd := exec.CommandContext(ctx, words[0], words[1:]...)
	if stdin != "" {
		cmd.Stdin = strings.NewReader(stdin)
	}
	var out, bad strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &bad
	err := cmd.Run()
	if err == nil {
		return out.String(), nil
	}
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	said := oneLine(bad.String())
	if said == "" {
		said = oneLine(out.String())
	}
	kind := ErrRefused
	if _, ended := errors.AsType[*exec.ExitError](err); !ended {
		kind = ErrUnreachable
	}
	return out.String(), fmt.Errorf("%s: %w: %w%s", words[0], kind, err, after(": ", said))
}

// oneLine is what a client says, in a line of bounded length.
func oneLine(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if runes := []rune(text); len(runes) > mostSaid {
		text = string(runes[:mostSaid]) + "…"
	}
	return text
}

const mostSaid = 600 // characters

func after(before, text string) string {
	if text == "" {
		return ""
	}
	return before + text
}
