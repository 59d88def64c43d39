package submit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"time"
)

// State is how a job stands, as its launcher tells it.
type State struct {
	Word string // the launcher's own
	Over bool   // the launcher runs nothing of it and will start nothing again; of Nomad also: no allocation of it is left
	OK   bool   // of one that is over: the launcher counts it a success
	Why  string // what it says beside that: why nothing is placed, how it failed; empty: nothing
	// Futile: it starts an agent again and again that has ended with a code that says that this is of no use.
	Futile bool
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

// client is how a launcher's own client is run.
type client struct {
	patience time.Duration // for one call; 0: clientPatience
}

const (
	clientPatience = time.Minute
	// clientGrace is how long the output of a client is waited for that was ended: its children may hold it.
	clientGrace = 2 * time.Second
)

// send is command for what starts a job. Once begun it is not broken off, for nobody would know what has been taken by then: who
// is called off meanwhile has a job to end.
func (c client) send(ctx context.Context, stdin string, words ...string) (string, error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	said, err := c.command(context.WithoutCancel(ctx), stdin, words...)
	if _, ran := errors.AsType[*exec.ExitError](err); errors.Is(err, ErrUnreachable) && (ran || errors.Is(err, context.DeadlineExceeded)) {
		err = fmt.Errorf("%w: %w", ErrUnknown, err)
	}
	return said, err
}

// noAnswer is what the clients of Slurm and Kubernetes say, and end with 1, when their launcher's answer did not come: it may have
// taken what was sent. A connection that was refused is a no.
var noAnswer = regexp.MustCompile(`(?i)timed?[ -]?out|unable to contact|connection (reset|closed|lost|aborted|failure|to .* lost)|\bEOF\b|broken pipe|zero bytes|deadline exceeded|(send|receive) failure|endpoint is not connected`)

// command runs a launcher's client and gives what it says on stdout. A terminal's Ctrl-C goes to a process group, of which each gets
// one of its own: we say when it is to end.
func (c client) command(ctx context.Context, stdin string, words ...string) (string, error) {
	patience := cmp.Or(c.patience, clientPatience)
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, words[0], words[1:]...)
	cmd.WaitDelay, cmd.SysProcAttr = clientGrace, &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	if stdin != "" {
		cmd.Stdin = strings.NewReader(stdin)
	}
	var out, bad strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &bad
	err := cmd.Run()
	if err == nil || errors.Is(err, exec.ErrWaitDelay) && ctx.Err() == nil { // it has ended well, and left a child that holds its output
		return out.String(), nil
	}
	if ctx.Err() == context.DeadlineExceeded {
		return out.String(), fmt.Errorf("%s: %w: no answer in %s%s: %w", words[0], ErrUnreachable, patience, after(": ", oneLine(bad.String())), ctx.Err())
	}
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	whole := spoken(bad.String())
	if strings.TrimSpace(whole) == "" {
		whole = out.String()
	}
	kind := ErrRefused
	if ended, ran := errors.AsType[*exec.ExitError](err); !ran || !ended.Exited() || noAnswer.MatchString(whole) {
		kind = ErrUnreachable
	}
	return out.String(), fmt.Errorf("%s: %w: %w%s", words[0], kind, err, after(": ", oneLine(whole)))
}

// klog is how kubectl begins the lines that it logs for its developers.
var klog = regexp.MustCompile(`(?m)^[IWEF]\d{4} \d\d:\d\d:\d\d\.\d+ .*\n?`)

// spoken is what a client says to people, and what it logs where it says nothing else.
func spoken(text string) string {
	if said := klog.ReplaceAllString(text, ""); strings.TrimSpace(said) != "" {
		return said
	}
	return text
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
