package process

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/muster-agent/muster/packages/slidershell"
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/fault"
	"github.com/muster-agent/muster/shim/plan"
	"github.com/muster-agent/muster/shim/sandbox"
	"github.com/muster-agent/muster/shim/sandbox/proc"
	"github.com/muster-agent/muster/shim/script"
	"github.com/muster-agent/muster/shim/tail"
)

// The commands of a package's scripts run beside the app, in its container. A command's input and output are files of
// the instance's log folder.

// commandEnd is how one command ended, with its output files.
type commandEnd struct {
	script.Result
	signal     int // that ended it; 0: none, or it was ended at its time limit
	files      script.Files
	structured []byte
}

// order runs one command and waits for its end, at most for limit (0: no limit).
func (p *Process) order(ctx context.Context, command string, limit time.Duration) (commandEnd, error) {
	return p.carryOut(ctx, script.Order{Command: command}, limit)
}

// carryOut runs an order, which has no number yet.
func (p *Process) carryOut(ctx context.Context, o script.Order, limit time.Duration) (commandEnd, error) {
	if o.Command == plan.CommandStatus { // its files are overwritten
		p.statusTurn.Lock()
		defer p.statusTurn.Unlock()
		limit = min(limit, mostStatus)
	}
	if ctx.Err() != nil {
		return commandEnd{}, context.Cause(ctx)
	}
	o, s := p.numbered(o), p.filledScript()
	argv, err := p.tell(o, s)
	if err != nil {
		return commandEnd{}, err
	}
	env, err := p.orderEnv(o.Task)
	if err != nil {
		return commandEnd{}, err
	}
	if limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	session, err := p.guards.now().Exec(ctx, sandbox.ExecSpec{
		Argv: argv, Env: environ(env), Dir: p.Plan.Process.Cwd,
		Awaited: o.Command == plan.CommandStop, // it may have work left after the process has ended
	})
	if err != nil {
		return commandEnd{}, err
	}
	end := p.follow(ctx, o, session)
	if end.TimedOut {
		end.Why = fmt.Sprintf(causeOverlong, o.Command, limit)
	}
	return end, nil
}

// numbered is an order with its number. STATUS has none: its files are overwritten.
func (p *Process) numbered(o script.Order) script.Order {
	if o.Command != plan.CommandStatus {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.task++
		o.Task = p.task
	}
	return o
}

// filledScript is the plan's script with the values that are known now.
func (p *Process) filledScript() *plan.Script {
	roster, _ := p.Roster()
	return p.Plan.Script.Filled(p.Plan, roster, plan.StartFacts{Host: p.Reach.Host, Ports: p.Ports.Numbers()})
}

// tell writes the input of a command, and returns its command line.
func (p *Process) tell(o script.Order, s *plan.Script) ([]string, error) {
	folder, err := p.logs.open()
	if err != nil {
		return nil, err
	}
	defer folder.Close()
	names := o.Files()
	// the file of the last STATUS, or a folder in its place
	for _, name := range []string{names.Structured, names.Command} {
		if err := folder.RemoveAll(name); err != nil {
			return nil, err
		}
	}
	text := string(o.Document(p.Plan, s, p.Reach.Host))
	if err := folder.Write(names.Command, text, 0o644); err != nil {
		return nil, err
	}
	return o.Argv(s, p.LogDir, p.Plan.Process.Folder), nil
}

// orderEnv is the environment of the last start; before the first start, the part of it that needs no roster.
func (p *Process) orderEnv(task int) (map[string]string, error) {
	p.mu.Lock()
	last := p.startEnv
	p.mu.Unlock()
	if last != nil {
		return last, nil
	}
	facts := p.startFacts(plan.StartFacts{Ports: p.Ports.Numbers(), Task: task})
	if err := p.secrets(&facts); err != nil {
		return nil, err
	}
	start, problems := plan.Finish(p.Plan, registry.Roster{}, facts, noFramework)
	if bad := problems.Errors(); len(bad) > 0 {
		return nil, fault.Definition(bad)
	}
	return start.Env, nil
}

// follow writes a command's output to files until it ends, or is ended with all its children.
func (p *Process) follow(ctx context.Context, o script.Order, s *sandbox.Session) commandEnd {
	defer s.Close()
	_ = s.Stdin.Close() // it gets no input
	end := commandEnd{files: o.Files()}
	var said sync.WaitGroup
	var stderr tail.Buffer
	said.Go(func() { p.logs.keep(end.files.Stdout, s.Stdout, io.Discard) })
	said.Go(func() { p.logs.keep(end.files.Stderr, s.Stderr, &stderr) })
	exit, err := s.Wait(ctx)
	if ctx.Err() != nil {
		end.TimedOut = errors.Is(ctx.Err(), context.DeadlineExceeded)
		kill := s.Kill()
		if kill != nil && !errors.Is(kill, os.ErrProcessDone) && !errors.Is(kill, sandbox.ErrGone) {
			p.Log.Warn("command not killed", "command", o.Command, "err", kill)
		}
		if _, stuck := errors.AsType[*proc.StuckError](kill); stuck { // waiting would not end
			err = errors.Join(kill, s.Close())
		} else {
			exit, err = s.Wait(context.WithoutCancel(ctx)) // it ends with the guard at the latest
		}
	}
	said.Wait()
	end.structured = p.logs.structured(end.files.Structured)
	end.Absent = script.Absent(end.structured)
	switch {
	case end.TimedOut:
	case err != nil:
		end.Why = err.Error()
	case exit.Signal != 0:
		end.signal, end.Why = exit.Signal, "killed by "+registry.SignalName(exit.Signal)
	default:
		end.Code, end.Why = exit.Code, cmp.Or(p.complaint(stderr.String()), o.Command+" said nothing on stderr")
	}
	return end
}

// complaint is the remedy of a failed command where it is known, or else the last line that it wrote on stderr.
func (p *Process) complaint(stderr string) string {
	return cmp.Or(slidershell.Advice(pathOf(p.Plan.Script), stderr), script.LastLine([]byte(stderr)))
}

// orderStart writes the input of START, and removes the pid files of the last start: their numbers may belong to other
// processes now. It returns the number of the command.
func (p *Process) orderStart() (task int, err error) {
	o, s := p.numbered(script.Order{Command: plan.CommandStart}), p.filledScript()
	p.removePIDs(s)
	_, err = p.tell(o, s)
	return o.Task, err
}
