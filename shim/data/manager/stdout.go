package manager

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/shim/data"
	"github.com/muster-agent/muster/shim/data/stream"
	"github.com/muster-agent/muster/shim/files"
	"github.com/muster-agent/muster/shim/plan"
)

// gathered is the stdout of one attempt as an output.
type gathered struct {
	cancel context.CancelCauseFunc
	done   chan struct{} // closed at the end
	left   data.Left     // once done
	err    error         // once done
	spool  *stream.Cache // what a class of the user's is to write; nil: none is
}

// stdoutOutput is the output that the process's stdout is; false: stdout is a log.
func stdoutOutput(p plan.Plan) (plan.Output, bool) {
	if p.Outputs == nil || p.Outputs.Strategy != appdef.StrategyStream {
		return plan.Output{}, false
	}
	for _, one := range p.Outputs.To {
		if one.To != "" {
			return one, true
		}
	}
	return plan.Output{}, false
}

// beginGathering writes the process's stdout to its store. The process waits while the store does.
func (s *Pipes) beginGathering(over <-chan struct{}) {
	ctx, cancel := context.WithCancelCause(s.m.ctx)
	g := &gathered{cancel: cancel, done: make(chan struct{})}
	s.m.mu.Lock()
	before := s.m.gathered
	s.m.gathered = g
	s.m.mu.Unlock()
	s.m.tasks.Go(func() {
		select {
		case <-over:
		case <-ctx.Done():
		case <-g.done:
			return
		}
		if err := s.said.Over(); err != nil {
			s.m.cfg.Log.Warn("end of stdout not read", "err", err)
		}
	})
	s.m.tasks.Go(func() {
		defer close(g.done)
		defer cancel(nil)
		if before != nil { // of an attempt that has ended
			before.cancel(errors.New("another attempt has begun"))
			<-before.done
			before.drop()
		}
		s.gather(ctx, g)
	})
}

func (s *Pipes) gather(ctx context.Context, g *gathered) {
	begun := time.Now()
	if plan.OutputByClass(s.plan.Outputs.Format) {
		g.left, g.err = s.keep(ctx, g)
	} else {
		g.left, g.err = s.gatherAll(ctx)
	}
	if g.err == nil {
		s.m.cfg.Log.Info("stdout is gathered", "files", g.left.Files, "bytes", g.left.Bytes, "took",
			time.Since(begun).Round(time.Millisecond))
		g.err = s.said.Close()
		return
	}
	s.m.cfg.Log.Error("stdout not gathered", "err", g.err)
	s.m.cfg.Process.Fail("stdout: "+g.err.Error(), g.err)
	g.err = errors.Join(g.err, s.said.Close())
}

func (s *Pipes) gatherAll(ctx context.Context) (data.Left, error) {
	one, _ := stdoutOutput(s.plan)
	leave, err := s.m.leaveOf(ctx, s.plan, one)
	if err != nil {
		return data.Left{}, err
	}
	if err := leave.Begin(ctx); err != nil {
		return data.Left{}, err
	}
	how := s.m.Transfer()
	how.Again = func(file, why string) { s.m.cfg.Log.Warn("stdout written again", "file", file, "err", why) }
	to := data.Gathering{Store: leave.Store, Dir: leave.Half(), Again: how.Persevere, Bare: func(err error) {
		s.m.cfg.Log.Warn("stdout has no copy on this host while it is written", "err", err)
	}}
	if parts, _ := plan.OutputParts(s.plan.Outputs.Format); parts {
		to.Part = data.PartSize
	}
	if files.LocalPath(one.To) != "" { // on this host
		return to.Run(ctx, s.said)
	}
	folder, err := s.m.instanceRoot(s.plan)
	if err != nil {
		return data.Left{}, err
	}
	to.Beside = folder
	left, err := to.Run(ctx, s.said)
	return left, errors.Join(err, folder.Close())
}

// leaveStdout completes the output that the process has written to stdout.
func (m *Manager) leaveStdout(
	ctx context.Context, p plan.Plan, one plan.Output, leave data.Leave,
) (data.Left, error) {
	m.mu.Lock()
	g := m.gathered
	m.mu.Unlock()
	if g == nil {
		return data.Left{}, errors.New("stdout of the process was not read")
	}
	select {
	case <-g.done:
	case <-ctx.Done():
		g.cancel(context.Cause(ctx))
		return data.Left{}, context.Cause(ctx)
	}
	if g.err != nil {
		return data.Left{}, fmt.Errorf("stdout: %w", g.err)
	}
	if g.spool != nil {
		return m.leaveByClass(ctx, p, one, leave, g)
	}
	return g.left, leave.Seal(ctx)
}
