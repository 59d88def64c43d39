package job

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

// Runner is how a launcher's own client is run.
type Runner struct {
	Patience time.Duration // for one call; 0: Patience
}

const (
	// Patience is how long one call of a client may take where nothing else is said.
	Patience = time.Minute
	// Grace is how long the output of a client is waited for that was ended: its children may hold it.
	Grace = 2 * time.Second
)

// Send is command for what starts a job. Once begun it is not broken off, for nobody would know what has been taken
// by then: who is called off meanwhile has a job to end.
func (c Runner) Send(ctx context.Context, stdin string, words ...string) (string, error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	said, err := c.Run(context.WithoutCancel(ctx), stdin, words...)
	_, ran := errors.AsType[*exec.ExitError](err)
	if errors.Is(err, ErrUnreachable) && (ran || errors.Is(err, context.DeadlineExceeded)) {
		err = fmt.Errorf("%w: %w", ErrUnknown, err)
	}
	return said, err
}

// noAnswer is what the clients of Slurm and Kubernetes say, and end with 1, when their launcher's answer did not
// come: it may have taken what was sent. A connection that was refused is a no.
var noAnswer = regexp.MustCompile(`(?i)timed?[ -]?out|unable to contact|` +
	`connection (reset|closed|lost|aborted|failure|to .* lost)|\bEOF\b|broken pipe|zero bytes|` +
	`deadline exceeded|(send|receive) failure|endpoint is not connected`)

// Run runs a launcher's client and returns its stdout. A terminal's Ctrl-C goes to a process group, and each client has
// one of its own: the caller's context ends it.
func (c Runner) Run(ctx context.Context, stdin string, words ...string) (string, error) {
	patience := cmp.Or(c.Patience, Patience)
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, words[0], words[1:]...)
	cmd.WaitDelay, cmd.SysProcAttr = Grace, &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	if stdin != "" {
		cmd.Stdin = strings.NewReader(stdin)
	}
	var out, bad strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &bad
	err := cmd.Run()
	// It has ended well, and left a child that holds its output.
	if err == nil || errors.Is(err, exec.ErrWaitDelay) && ctx.Err() == nil {
		return out.String(), nil
	}
	if ctx.Err() == context.DeadlineExceeded {
		return out.String(), fmt.Errorf("%s: %w: no answer in %s%s: %w",
			words[0], ErrUnreachable, patience, After(": ", OneLine(bad.String())), ctx.Err())
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
	return out.String(), fmt.Errorf("%s: %w: %w%s", words[0], kind, err, After(": ", OneLine(whole)))
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

// OneLine is what a client says, in a line of bounded length.
func OneLine(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if runes := []rune(text); len(runes) > mostSaid {
		text = string(runes[:mostSaid]) + "…"
	}
	return text
}

const mostSaid = 600 // characters

// After is a text behind another one; "" stays "".
func After(before, text string) string {
	if text == "" {
		return ""
	}
	return before + text
}
