package process

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"strings"
	"syscall"

	"github.com/muster-agent/muster/shim/sandbox"
	"github.com/muster-agent/muster/shim/status"
)

// Exec runs a program beside the app for a user of this host. The log names each program.
func (p *Process) Exec(ctx context.Context, ask status.ExecRequest) (status.Execution, error) {
	guard := p.guards.now()
	spec := sandbox.ExecSpec{Argv: ask.Argv, Env: environ(p.execEnv(ask.Env)), Dir: p.Plan.Process.Cwd}
	if guard == nil {
		return status.Execution{}, fmt.Errorf("the container does not exist yet: the instance is %s",
			p.Loop.State().Phase)
	}
	switch {
	case path.IsAbs(ask.Cwd):
		spec.Dir = ask.Cwd
	case ask.Cwd != "":
		spec.Dir = path.Join(spec.Dir, ask.Cwd)
	}
	if z := ask.Terminal; z != nil {
		spec.Terminal = &sandbox.Size{Rows: z.Rows, Columns: z.Columns}
	}
	s, err := guard.Exec(ctx, spec)
	if err != nil {
		p.Log.Warn("exec refused", "argv", ask.Argv, "err", err)
		return status.Execution{}, err
	}
	p.Log.Info("exec", "pid", s.PID(), "argv", ask.Argv, "cwd", spec.Dir, "terminal", ask.Terminal != nil)
	p.work.Go(func() {
		x := execExit(s.Wait(context.WithoutCancel(ctx))) // it ends with the guard at the latest
		p.Log.Info("exec ended", "pid", s.PID(), "code", x.Code, "signal", x.Signal, "err", x.Error)
	})
	return status.Execution{
		Stdin: s.Stdin, Stdout: s.Stdout, Stderr: s.Stderr,
		Resize: func(z status.ExecSize) error { return s.Resize(sandbox.Size{Rows: z.Rows, Columns: z.Columns}) },
		Signal: func(n int) error { return s.Signal(syscall.Signal(n)) },
		Wait:   func(ctx context.Context) status.ExecExit { return execExit(s.Wait(ctx)) },
		Close:  s.Close,
	}, nil
}

// Beside runs a program of the agent's own in the instance's confinement, with the words that it has in the environment
// of the last start.
func (p *Process) Beside(
	ctx context.Context, argv func(env map[string]string) []string,
) (*sandbox.Session, error) {
	guard, env := p.guards.now(), p.execEnv(nil)
	if guard == nil {
		return nil, sandbox.ErrGone
	}
	return guard.Exec(ctx, sandbox.ExecSpec{Argv: argv(env), Env: environ(env), Dir: p.Plan.Process.Cwd})
}

// execEnv is the environment of the last start, or before the first start that of the plan, with more added.
func (p *Process) execEnv(more []string) map[string]string {
	p.mu.Lock()
	env := maps.Clone(p.startEnv)
	p.mu.Unlock()
	if env == nil {
		env = map[string]string{}
		maps.Copy(env, p.Plan.Process.Inherited)
		maps.Copy(env, p.Plan.Process.Env)
		if p.Reach.Publisher != "" {
			env["MUSTER_SLIDER_URL"] = p.Reach.Publisher
		}
	}
	for _, e := range more {
		name, value, _ := strings.Cut(e, "=")
		env[name] = value
	}
	return env
}

func (p *Process) setStartEnv(env map[string]string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.startEnv = env
}

func execExit(x sandbox.Exit, err error) status.ExecExit {
	switch {
	case err != nil && (x.Message == "" || errors.Is(err, context.Canceled)):
		return status.ExecExit{Error: err.Error()}
	case err != nil:
		return status.ExecExit{Error: x.Message + ": " + err.Error()}
	case x.Code != nil:
		return status.ExecExit{Code: *x.Code}
	}
	return status.ExecExit{Signal: x.Signal}
}
