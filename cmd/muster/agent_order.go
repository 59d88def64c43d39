package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/muster-agent/muster/packages/slidershell"
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/fault"
	"github.com/muster-agent/muster/shim/files"
	"github.com/muster-agent/muster/shim/plan"
	"github.com/muster-agent/muster/shim/sandbox"
	"github.com/muster-agent/muster/shim/sandbox/proc"
	"github.com/muster-agent/muster/shim/script"
	"github.com/muster-agent/muster/shim/tail"
)

// The commands of a package's scripts run beside the app, in its container. What one is told and what it says lies in
// the instance's log folder, which belongs to its process: nothing there is opened by a name that could lead elsewhere.

// Bounds of what a command may say, in bytes.
const (
	mostOutput     = 16 << 20
	mostStructured = 1 << 20
)

// commandEnd is how one command ended, with what it said.
type commandEnd struct {
	script.Result
	files      script.Files
	structured []byte
}

// order runs one command and waits for its end, at most for limit (0: no limit).
func (a *agent) order(ctx context.Context, command string, limit time.Duration) (commandEnd, error) {
	if command == plan.CommandStatus { // its files are written over
		a.statusTurn.Lock()
		defer a.statusTurn.Unlock()
		limit = min(limit, mostStatus)
	}
	if ctx.Err() != nil {
		return commandEnd{}, context.Cause(ctx)
	}
	o, s := a.nextOrder(command), a.filledScript()
	argv, err := a.tell(o, s)
	if err != nil {
		return commandEnd{}, err
	}
	env, err := a.orderEnv(o.Task)
	if err != nil {
		return commandEnd{}, err
	}
	if limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	session, err := a.currentGuard().Exec(ctx, sandbox.ExecSpec{
		Argv: argv, Env: environ(env), Dir: a.currentPlan().Process.Cwd,
		Awaited: command == plan.CommandStop, // it may have more to do when the process is gone
	})
	if err != nil {
		return commandEnd{}, err
	}
	end := a.follow(ctx, o, session)
	if end.TimedOut {
		end.Why = fmt.Sprintf("%s was at work for %s and was ended", command, limit)
	}
	return end, nil
}

// nextOrder gives a command its number. STATUS has none: its files are written over.
func (a *agent) nextOrder(command string) script.Order {
	o := script.Order{Command: command}
	if command != plan.CommandStatus {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.task++
		o.Task = a.task
	}
	return o
}

// filledScript is the plan's script with what is known by now.
func (a *agent) filledScript() *plan.Script {
	roster, _ := a.member.Roster()
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.plan.Script.Filled(a.plan, roster, plan.StartFacts{Host: a.alloc.Host, Ports: a.portOf})
}

// tell writes what the command reads, and says how it is called.
func (a *agent) tell(o script.Order, s *plan.Script) ([]string, error) {
	p := a.currentPlan()
	folder, err := a.openLogs()
	if err != nil {
		return nil, err
	}
	defer folder.Close()
	names := o.Files()
	for _, name := range []string{names.Structured, names.Command} { // of the last STATUS, or a folder in a file's place
		if err := folder.RemoveAll(name); err != nil {
			return nil, err
		}
	}
	text := string(o.Document(p, s, a.alloc.Host))
	if err := folder.WriteHere(names.Command, text, false); err != nil {
		return nil, fmt.Errorf("write %s: %w", names.Command, err)
	}
	return o.Argv(s, a.instanceLogs(), p.Process.Folder), nil
}

// instanceLogs is the instance's log folder.
func (a *agent) instanceLogs() string {
	return filepath.Join(a.logDir, a.loop.State().Instance.String())
}

func (a *agent) openLogs() (files.Folder, error) { return files.As(a.user).Below(a.instanceLogs()) }

// orderEnv is the environment of the last start; before it, what is known without the others.
func (a *agent) orderEnv(task int) (map[string]string, error) {
	a.mu.Lock()
	last, p, numbers := a.startEnv, a.plan, a.portOf
	a.mu.Unlock()
	if last != nil {
		return last, nil
	}
	values, err := secrets(p.Process.SecretRefs)
	if err != nil {
		return nil, fault.Definition(err)
	}
	start, problems := plan.Finish(p, registry.Roster{}, a.startFacts(plan.StartFacts{Ports: numbers, Secrets: values, Task: task}), noFramework)
	if bad := problems.Errors(); len(bad) > 0 {
		return nil, fault.Definition(bad)
	}
	return start.Env, nil
}

// follow writes down what a command says until it ends, or is ended with all that it has started.
func (a *agent) follow(ctx context.Context, o script.Order, s *sandbox.Session) commandEnd {
	defer s.Close()
	_ = s.Stdin.Close() // it is asked nothing
	end := commandEnd{files: o.Files()}
	var said sync.WaitGroup
	var stderr tail.Buffer
	said.Go(func() { a.keep(end.files.Stdout, s.Stdout, io.Discard) })
	said.Go(func() { a.keep(end.files.Stderr, s.Stderr, &stderr) })
	exit, err := s.Wait(ctx)
	if ctx.Err() != nil {
		end.TimedOut = errors.Is(ctx.Err(), context.DeadlineExceeded)
		kill := s.Kill()
		if kill != nil && !errors.Is(kill, os.ErrProcessDone) && !errors.Is(kill, sandbox.ErrGone) {
			a.log.Warn("end a command", "command", o.Command, "err", kill)
		}
		if _, stuck := errors.AsType[*proc.StuckError](kill); stuck { // who waits for it would wait as long
			err = errors.Join(kill, s.Close())
		} else {
			exit, err = s.Wait(context.WithoutCancel(ctx)) // it ends with the guard at the latest
		}
	}
	said.Wait()
	end.structured = a.structured(end.files.Structured)
	end.Absent = script.Absent(end.structured)
	switch {
	case end.TimedOut:
	case err != nil:
		end.Why = err.Error()
	case exit.Signal != 0:
		end.Why = "killed by signal " + fmt.Sprint(exit.Signal)
	default:
		end.Code, end.Why = exit.Code, a.complaint(o, stderr.String())
	}
	return end
}

// complaint is what a command that failed says last, and what would help where that is known.
func (a *agent) complaint(o script.Order, stderr string) string {
	s := a.currentPlan().Script
	if advice := slidershell.Advice(pathOf(s), stderr); advice != "" {
		return advice
	}
	if last := script.LastLine([]byte(stderr)); last != "" {
		return last
	}
	return o.Command + " said nothing on stderr"
}

// keep writes a stream into a file of the log folder, in the place of what its name holds, and its end to also. What is too
// much is read and dropped: the command must not wait for its reader.
func (a *agent) keep(name string, from io.Reader, also io.Writer) {
	f, err := a.newLog(name)
	if err != nil {
		a.log.Warn("keep what a command says", "file", name, "err", err)
		_, _ = io.Copy(also, from)
		return
	}
	n, err := io.CopyN(io.MultiWriter(f, also), from, mostOutput)
	if n == mostOutput {
		_, err = fmt.Fprintf(f, "\n… more than %d bytes: the rest was dropped\n", mostOutput)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		a.log.Warn("keep what a command says", "file", name, "err", err)
	}
	_, _ = io.Copy(also, from)
	if err := f.Close(); err != nil {
		a.log.Warn("keep what a command says", "file", name, "err", err)
	}
}

func (a *agent) newLog(name string) (*os.File, error) {
	folder, err := a.openLogs()
	if err != nil {
		return nil, err
	}
	defer folder.Close()
	return folder.New(name)
}

// structured reads what a script has answered as JSON; nil when it has not.
func (a *agent) structured(name string) []byte {
	f, err := files.OpenPlain(filepath.Join(a.instanceLogs(), name))
	if err != nil {
		return nil
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, mostStructured))
	if err != nil {
		return nil
	}
	return text
}
