package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/files"
	"github.com/muster-agent/muster/shim/machine"
	"github.com/muster-agent/muster/shim/plan"
	"github.com/muster-agent/muster/shim/stage"
)

// Interim saves go on beside everything else: the machine, its renewals and the process wait for none.

var (
	errNothingRuns = errors.New("no process runs")
	errProcessOver = errors.New("the process has ended")
)

// saveAsked answers a save that a directive asks for, once.
func (a *agent) saveAsked(d registry.Directive) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if d.Save == nil || d.Run != a.id.run || d.Act == registry.ActStop || d.Save.Seq <= a.saveHeard || a.member.Membership() == nil {
		return
	}
	a.saveHeard = d.Save.Seq
	if c := a.app.Component(a.member.Membership().Instance().Component); c == nil || !leavesSomething(*c) {
		return
	}
	go a.answerSave(*d.Save)
}

func (a *agent) answerSave(s registry.Save) {
	answer := a.saveInTurn(s)
	if err := a.member.Membership().Saved(context.Background(), answer); err != nil { // it tries until the seat is left
		a.log.Debug("report a save", "err", err)
	}
}

// saveInTurn does one save at a time. The registry is told afterwards: it may be away, and nobody waits for it.
func (a *agent) saveInTurn(s registry.Save) registry.Saved {
	a.saveTurn.Lock()
	defer a.saveTurn.Unlock()
	begun, answer := time.Now(), registry.Saved{Seq: s.Seq}
	err := a.save(s, &answer)
	switch {
	case errors.Is(err, errNothingRuns):
		return registry.Saved{Seq: s.Seq, Failed: err.Error()}
	case err != nil:
		a.log.Warn("outputs are not saved", "stamp", s.Stamp, "err", err)
		return registry.Saved{Seq: s.Seq, Failed: short(err.Error())}
	case len(answer.To) > 0:
		a.log.Info("outputs are saved", "stamp", s.Stamp, "files", answer.Files, "bytes", answer.Bytes, "took", time.Since(begun).Round(time.Millisecond))
	}
	return answer
}

// save copies the folders of the process that runs. Its end calls that off: it has an upload of its own.
func (a *agent) save(s registry.Save, answer *registry.Saved) (err error) {
	a.mu.Lock()
	p, over := a.plan, a.over
	a.mu.Unlock()
	if over == nil || p.Outputs == nil || a.loop.State().Phase != machine.Running {
		return errNothingRuns
	}
	if p.Outputs.Strategy == appdef.StrategyStream {
		return nil
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	go func() {
		select {
		case <-over:
			cancel(errProcessOver)
		case <-ctx.Done():
		}
	}()
	bounded, stop := a.withinStaging(ctx)
	defer stop()
	work, err := files.As(nil).Below(a.workDir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, work.Close()) }()
	for _, one := range p.Outputs.To {
		if one.To == "" {
			continue
		}
		if err := a.saveOutput(bounded, p, one, s.Stamp, work, answer); err != nil {
			return fmt.Errorf("output %s: %w", one.Name, err)
		}
	}
	return nil
}

func (a *agent) saveOutput(ctx context.Context, p plan.Plan, one plan.Output, stamp string, work files.Folder, answer *registry.Saved) (err error) {
	leave, err := a.leaveOf(ctx, p, one)
	if err != nil {
		return err
	}
	folder, err := work.Make(filepath.Join(p.Process.Folder, one.Name))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, folder.Close()) }()
	save := stage.Save{Leave: leave, Stamp: stamp, Pause: restlessPause}
	if p.Outputs.Incremental {
		save.Since = a.saved[one.Name]
	}
	saved, err := save.Run(ctx, folder, a.outputTransfer(p.Outputs))
	if err != nil {
		return err
	}
	if len(saved.Restless) > 0 {
		leftOut(answer, one.Name, saved.Restless)
		a.log.Warn("files that are written to all the time are left out of a save", "output", one.Name, "stamp", stamp, "paths", strings.Join(saved.Restless, ", "))
	}
	if a.saved == nil {
		a.saved = map[string]stage.Seen{}
	}
	a.saved[one.Name] = saved.Seen
	answer.Files, answer.Bytes = answer.Files+saved.Files, answer.Bytes+saved.Bytes
	answer.To = append(answer.To, strings.TrimRight(one.To, "/")+"/"+cmp.Or(p.Outputs.Interim, plan.DefaultSaves)+stamp)
	return nil
}

// mostLeftOut is how many files an answer names: it stands in the member's record.
const mostLeftOut = 10

func leftOut(answer *registry.Saved, output string, paths []string) {
	for _, path := range paths {
		if len(answer.LeftOut) == mostLeftOut {
			answer.LeftOut[mostLeftOut-1] = "and more"
			return
		}
		answer.LeftOut = append(answer.LeftOut, short(output+"/"+path))
	}
}

// restlessPause is what a program is given to finish a file that changed while it was copied.
func restlessPause(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(time.Second):
		return nil
	}
}

// awaitSaves waits for the save that the end of the process has called off: nothing of it may come after what is
// settled.
func (a *agent) awaitSaves() {
	a.saveTurn.Lock()
	a.saveTurn.Unlock() //nolint:staticcheck // whoever comes later finds no process
}
