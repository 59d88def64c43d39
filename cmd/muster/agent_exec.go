package main

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

// exec runs a program beside the app, as somebody on this host asks. Each is in the log with what it ran.
func (a *agent) exec(ctx context.Context, ask status.ExecRequest) (status.Execution, error) {
	a.mu.Lock()
	guard, spec := a.guard, sandbox.ExecSpec{Argv: ask.Argv, Env: environ(a.execEnv(ask.Env)), Dir: a.plan.Process.Cwd}
	a.mu.Unlock()
	if guard == nil {
		return status.Execution{}, fmt.Errorf("there is nothing to run it in yet: the instance is %s", a.loop.State().Phase)
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
		a.log.Warn("exec refused", "argv", ask.Argv, "err", err)
		return status.Execution{}, err
	}
	a.log.Info("exec", "pid", s.PID(), "argv", ask.Argv, "cwd", spec.Dir, "terminal", ask.Terminal != nil)
	go func() {
		x := execExit(s.Wait(context.WithoutCancel(ctx))) // it ends with the guard at the latest
		a.log.Info("exec ended", "pid", s.PID(), "code", x.Code, "signal", x.Signal, "err", x.Error)
	}()
	return status.Execution{
		Stdin: s.Stdin, Stdout: s.Stdout, Stderr: s.Stderr,
		Resize: func(z status.ExecSize) error { return s.Resize(sandbox.Size{Rows: z.Rows, Columns: z.Columns}) },
		Signal: func(n int) error { return s.Signal(syscall.Signal(n)) },
		Wait:   func(ctx context.Context) status.ExecExit { return execExit(s.Wait(ctx)) },
		Close:  s.Close,
	}, nil
}

// execEnv is the environment of the last start, before it what the plan knows of it, with more over it.
func (a *agent) execEnv(more []string) map[string]string {
	env := maps.Clone(a.startEnv)
	if env == nil {
		env = map[string]string{}
		maps.Copy(env, a.plan.Process.Inherited)
		maps.Copy(env, a.plan.Process.Env)
		if a.publisher != "" {
			env["MUSTER_SLIDER_URL"] = a.publisher
		}
	}
	for _, e := range more {
		name, value, _ := strings.Cut(e, "=")
		env[name] = value
	}
	return env
}

func (a *agent) setStartEnv(env map[string]string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.startEnv = env
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
