package shim

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/muster-agent/muster/shim/files"
	"github.com/muster-agent/muster/shim/journal/timeline"
	"github.com/muster-agent/muster/shim/logtimes"
	"github.com/muster-agent/muster/shim/machine"
	"github.com/muster-agent/muster/shim/metrics"
	"github.com/muster-agent/muster/shim/notify"
	"github.com/muster-agent/muster/shim/notify/message"
	"github.com/muster-agent/muster/shim/plan"
	"github.com/muster-agent/muster/shim/samples"
	"github.com/muster-agent/muster/shim/status"
	"github.com/muster-agent/muster/shim/wording"
)

// run lives through the machine.
func (a *agent) run(ctx context.Context) machine.State {
	a.waits = newBarrierLog(a.loop.State, a.member.AskAbsent, a.log)
	a.loop.Use(machine.Rooms{
		Gang: a.member, Stager: stageRoom{a}, Engine: processRoom{a}, Checkpoints: a.checkpoints, Logger: a.log,
		Trace: a.trace, Heard: a.heard, Hide: a.hidden.Hide,
	})
	endWaits := a.waits.start(ctx)
	defer endWaits()
	final := a.loop.Run(ctx)
	a.member.Resign()
	return final
}

// trace handles each transition of the machine.
func (a *agent) trace(t machine.Transition) {
	a.member.StateChanged()
	a.journal.Trace(t)
	a.notify.Changed()
	a.waits.moved()
}

// heard is told of each event of the machine.
func (a *agent) heard(before machine.State, e machine.Event, after machine.State) {
	a.teller.heard(before, e, after)
	a.mu.Lock()
	a.conducted = a.conducted || after.Conducts
	a.mu.Unlock()
	if after.Step > before.Step && e.Kind == machine.Progressed {
		a.journal.Checkpoint(after.Step, e.At)
	}
}

// work watches the process's checkpoints, progress and output, and keeps when that was written.
func (a *agent) work(ctx context.Context, p plan.Plan, logDir string) {
	// The last output of the process is still read after a cancelled run: settle ends it.
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var wg sync.WaitGroup
	endWatch := a.checkpoints.Watch()
	for _, name := range []string{"stdout.log", "stderr.log"} {
		path := filepath.Join(logDir, name)
		wg.Go(func() {
			if err := status.Watch(ctx, path, files.PlainSize(path), a.progress.Stream()); err != nil {
				a.log.Warn("output not followed for progress", "file", path, "err", err)
			}
		})
	}
	for _, name := range []string{"stdout.log", "stderr.log", "agent.log"} {
		wg.Go(func() {
			if err := logtimes.Keep(ctx, filepath.Join(logDir, name), a.started); err != nil {
				a.log.Warn("times of a log not kept: muster logs --since shows all of it", "err", err)
			}
		})
	}
	wg.Go(func() { a.watchSilence(ctx, p, logDir) })
	endTee := func() {}
	if a.tees() {
		endTee = tee(ctx, logDir, a.output, a.log, teePatience)
	}
	a.gpus.Watch(ctx, p, a.runs())
	a.samples.Watch(ctx)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.settle = sync.OnceFunc(func() { endWatch(); cancel(); wg.Wait(); a.samples.Close(); endTee() })
	a.closers = append(a.closers, a.settle)
}

// source is the agent as the local API's source.
func (a *agent) source(logDir string) status.Source {
	var peers *status.Peers
	if a.currentPlan().MPI != nil { // otherwise no process starts programs in other instances
		peers = a.member.Peers()
	}
	process := a.runs()
	return status.Source{
		State:   a.snapshot,
		LogDir:  logDir,
		Samples: a.sampled, Metrics: a.metrics, MetricsType: metrics.ContentType,
		Silence: func() status.Silence { return a.member.Fence().Answer() },
		Roster:  a.member.GiveRoster,
		Adopt:   a.member.Adopt,
		View:    func(ctx context.Context) (any, error) { return appSource{a}.View(ctx) },
		Exec:    process.Exec,
		Peers:   peers,
		Command: process.Command,
		Redeem: func(ctx context.Context, grant string) error {
			return a.client.Redeem(ctx, a.id.appID, a.loop.State().Instance, grant)
		},
		Signal: func(n int) error {
			err := process.Signal(n)
			if errors.Is(err, os.ErrProcessDone) {
				return fmt.Errorf("%s has no process: it is %s", a.loop.State().Instance, a.loop.State().Phase)
			}
			return err
		},
		Hold: a.hold,
		Stop: func(grace *time.Duration) error {
			a.loop.Tell(machine.Event{Kind: machine.Term, Signal: int(syscall.SIGTERM), Grace: grace})
			return nil
		},
	}
}

// hold keeps the container of the failed process for so long from now on; 0 releases it.
func (a *agent) hold(keep time.Duration) error {
	switch s := a.loop.State(); {
	case s.Phase != machine.Holding && s.Phase != machine.Finishing, s.HoldUntil.IsZero():
		return fmt.Errorf("%s is %s and no container of a failed process is kept; "+
			"muster.hold in the definition keeps one", s.Instance, s.Phase)
	case keep == 0:
		a.journal.Event("release", "the container of the failed process is released", time.Now())
		a.loop.Tell(machine.Event{Kind: machine.Release})
	default:
		until := wording.Clock(time.Now().Add(keep))
		a.journal.Event("extend", "the container of the failed process is kept until "+until, time.Now())
		a.loop.Tell(machine.Event{Kind: machine.Extend, For: keep})
	}
	return nil
}

// snapshot is the agent's present state for the status.
func (a *agent) snapshot() status.State {
	s := a.loop.State()
	outage, way := a.member.Fence().Outage(), a.data.Activity()
	report := a.runs().Report()
	a.mu.Lock()
	defer a.mu.Unlock()
	numbers := a.ports.Numbers()
	exports, _ := plan.Publish(a.plan, a.alloc.Host, numbers)
	out := status.State{
		App: a.id.appID, Run: a.id.run, Inc: a.inc, PlanDigest: a.planDigest,
		LogDir: filepath.Join(a.logDir, s.Instance.String()),
	}
	inForce := a.plan.Limits
	inForce.MemoryMB = report.MemoryMB
	out.Limits = limits(inForce)
	out.Instance = status.Instance{
		Version: 1, Identity: status.IdentityOf(s.Instance), Phase: string(s.Phase), Since: a.journal.Since(),
		Location: status.Location{
			Host: a.alloc.Host, Pid: os.Getpid(), Ports: numbers, Exports: exports, DNSName: a.member.DNSName(),
		},
		Starts: status.Starts{
			Generation: s.Gen, Attempt: s.Attempt, Restarts: max(0, s.Attempt-1), Failures: report.Failures,
			Started: a.journal.Started(),
		},
		Advance:  status.Advance{Progress: a.progress.Fraction(), ResumedStep: a.resumed, NoOutputSince: a.silent},
		Conducts: s.Conducts,
		Cause:    s.Why(), Unenforced: []string{},
	}
	for _, d := range a.gpus.Devices() {
		out.GPUs = append(out.GPUs, status.GPU{ID: d.ID(), Model: d.Name})
	}
	out.Rank, out.Role = a.plan.Who.Rank, a.plan.Who.Role
	out.Cause = cmp.Or(out.Cause, way)
	if s.Phase == machine.Staging && report.Installing {
		out.Cause = plan.CommandInstall // it may take its time
	}
	if s.Attempt > 1 && s.Phase == machine.Running {
		out.LastEnd = report.LastEnd
	}
	out.Sides, out.Warnings = report.Sides, a.journal.Warnings()
	for _, u := range a.plan.Engine.Unenforced {
		out.Unenforced = append(out.Unenforced, u.Limit)
	}
	if s.Step > 0 {
		step := s.Step
		out.CheckpointStep = &step
	}
	if !s.AwaySince.IsZero() {
		since := status.Stamp(s.AwaySince)
		out.AwaySince = &since
	}
	if s.Exit != nil && s.Proc == 0 {
		out.ExitInfo = exitInfo(s.Exit)
		code := shellCode(s.Exit)
		out.Exit = &code
	}
	if kept := s.Phase == machine.Holding || s.Phase == machine.Finishing; kept && !s.HoldUntil.IsZero() {
		out.Hold = &status.Hold{Until: status.Stamp(s.HoldUntil)}
	}
	out.PAI = paiRow(a.plan.PAI, s)
	out.Outage, out.Waits = outage, a.member.Waits()
	if said := outageCause(outage); said != "" && s.LostData == "" {
		out.Cause = said
	}
	return out
}

// managerMessage is what the service manager is told of this agent now.
func (a *agent) managerMessage() notify.Message {
	now, s := time.Now(), a.loop.State()
	known := message.Agent{
		State: s, Instance: a.snapshot().Instance, Started: a.started, Stage: a.app.Settings.StageTimeout.Duration(),
		Leaving: a.data.Leaving(), Ready: a.notify.IsReady(), Stopping: a.notify.IsStopping(),
	}
	if message.AtBarrier(s) {
		known.Absent = a.member.Absent(now)
	}
	return known.At(now)
}

// outageCause explains why the process was stopped, or runs on, although the registry is unreachable.
func outageCause(o *status.Outage) string {
	switch {
	case o == nil:
		return ""
	case o.Fenced && o.Members == 0:
		return fmt.Sprintf("cut off from the registry since %s: stopped until it answers", wording.Clock(o.Since))
	case o.Fenced:
		return fmt.Sprintf("cut off from the registry since %s (%d of %d members are): stopped until it answers",
			wording.Clock(o.Since), o.CutOff, o.Members)
	case o.Members == 0:
		return ""
	}
	return fmt.Sprintf("registry away since %s for %d of %d members: goes on until %s", wording.Clock(o.Since),
		o.CutOff, o.Members, wording.Clock(o.Until))
}

func limits(l plan.Limits) map[string]any {
	text, err := json.Marshal(l)
	out := map[string]any{}
	if err == nil {
		err = json.Unmarshal(text, &out)
	}
	if err != nil {
		panic("limits have no JSON: " + err.Error())
	}
	return out
}

func exitInfo(x *machine.Exit) *status.Exit {
	return &status.Exit{
		Code: x.Code, Signal: x.Signal, OOM: x.OOM, Peak: x.Peak, Limit: x.Limit,
		At: status.Stamp(x.At), Message: x.Message, LastOutput: x.LastOutput,
	}
}

// shellCode is a process's end as a shell's exit code.
func shellCode(x *machine.Exit) int {
	switch {
	case x.Signal != 0:
		return 128 + x.Signal
	case x.Code != nil:
		return *x.Code
	}
	return 127
}

// epilogue writes exit.json, which it returns, and logs the end of the agent.
func (a *agent) epilogue(final machine.State, code, mapped int) (file status.ExitFile) {
	if final.Instance.Component == "" {
		return file
	}
	file = status.ExitFile{
		Version: 1, App: a.id.appID, Instance: final.Instance.String(), Attempt: final.Attempt, Generation: final.Gen,
		Verdict: final.Directive.Verdict, AgentCode: code,
	}
	if mapped != code {
		file.MappedCode = &mapped
	}
	if final.Exit != nil {
		file.Exit = exitInfo(final.Exit)
	}
	file.LogsFrom = a.runs().Marks()
	a.mu.Lock()
	settle := a.settle
	file.PAI = paiRow(a.plan.PAI, final)
	a.mu.Unlock()
	if settle != nil {
		settle() // a process may report progress right before its end
	}
	snapshot := a.snapshot()
	dir := filepath.Join(a.logDir, final.Instance.String())
	for name, value := range map[string]any{"exit.json": file, "last.json": snapshot.Instance} {
		if err := status.WriteJSON(filepath.Join(dir, name), value); err != nil {
			a.log.Error("results not written", "err", err)
		}
	}
	attrs := []any{"instance", final.Instance.String(), "code", code}
	if v := final.Directive.Verdict; v != nil {
		attrs = append(attrs, "outcome", v.Outcome, "cause", v.Cause)
		if v.Advice != "" {
			attrs = append(attrs, "advice", v.Advice)
		}
	}
	a.log.Info("agent ends", attrs...)
	return file
}

// NewID is a random UUID, version 4.
func NewID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // it never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	h := hex.EncodeToString(b[:])
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}

// reading is what the instance uses now; false: nothing of it runs yet, or any more.
func (a *agent) reading(ctx context.Context) (samples.Reading, bool) {
	load, ok := a.runs().Load()
	if !ok {
		return samples.Reading{}, false
	}
	r := samples.Reading{Memory: load.Memory, CPU: load.CPU}
	for _, l := range a.gpus.Loads(ctx) {
		r.GPUs = append(r.GPUs, samples.GPU{ID: l.ID, Use: l.Use, Memory: l.Used, Total: l.Total})
	}
	return r, true
}

// metrics writes what is known of the instance. The driver of GPUs is not asked again: its word is in the samples.
func (a *agent) metrics(_ context.Context, to io.Writer) error {
	now, report := time.Now(), a.runs().Report()
	i := metrics.Instance{
		State: a.snapshot(), Silence: a.member.Fence().Answer(), Limits: a.limits(), CheckpointAt: a.journal.Saved(),
		Counts: metrics.Counts{OOM: int64(report.OutOfMemory), RegistryErrors: a.client.Failed()},
	}
	if load, ok := a.runs().Load(); ok {
		i.Running, i.Use = true, samples.Reading{Memory: load.Memory, CPU: load.CPU, GPUs: a.samples.GPUs()}
	}
	if lines, all := a.journal.Lines(); all {
		i.Spent = new(timeline.Of(lines, now))
	}
	var set metrics.Set
	set.AddInstance(i, now)
	return set.Write(to)
}

// limits are those that samples and metrics stand against.
func (a *agent) limits() samples.Limits {
	return samples.Limits{Memory: int64(a.runs().Report().MemoryMB) << 20, Cores: a.currentPlan().Limits.VCores}
}

// sampled are the samples later than a moment of Unix time, with the limits of now.
func (a *agent) sampled(since int64) samples.Table {
	t := a.samples.Table(since)
	t.Instance = a.loop.State().Instance.String()
	t.Limits = a.limits()
	return t
}
