package shim

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/data"
	"github.com/muster-agent/muster/shim/files"
	"github.com/muster-agent/muster/shim/machine"
	"github.com/muster-agent/muster/shim/plan"
)

// Interim saves go on beside everything else: the machine, its renewals and the process wait for none.

var (
	errNothingRuns = errors.New("no process runs")
	errProcessOver = errors.New("the process has ended")
)

// interimSaves is what is known of the interim saves.
type interimSaves struct {
	mu    sync.Mutex
	heard int // the last save that was asked for

	turn sync.Mutex           // one save at a time
	seen map[string]data.Seen // by output, as the last save has left it; whose turn it is has it
}

// next tells that a save was not heard of before.
func (s *interimSaves) next(seq int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if seq <= s.heard {
		return false
	}
	s.heard = seq
	return true
}

// saveAsked answers a save that a directive asks for, once.
func (d *dataManager) saveAsked(to registry.Directive) {
	seat := d.cfg.Seat()
	if to.Save == nil || to.Run != d.cfg.Run || to.Act == registry.ActStop || seat == nil || !d.saves.next(to.Save.Seq) {
		return
	}
	if c := d.cfg.App.Component(seat.Instance().Component); c == nil || !LeavesSomething(*c) {
		return
	}
	d.tasks.Go(func() { d.answerSave(seat, *to.Save) })
}

func (d *dataManager) answerSave(seat dataSeat, s registry.Save) {
	answer := d.saveInTurn(s)
	if err := seat.Saved(d.ctx, answer); err != nil { // it tries until the seat is left
		d.cfg.Log.Debug("report a save", "err", err)
	}
}

// saveInTurn does one save at a time. The registry is told afterwards: it may be away, and nobody waits for it.
func (d *dataManager) saveInTurn(s registry.Save) registry.Saved {
	d.saves.turn.Lock()
	defer d.saves.turn.Unlock()
	begun, answer := time.Now(), registry.Saved{Seq: s.Seq}
	err := d.save(s, &answer)
	switch {
	case errors.Is(err, errNothingRuns):
		return registry.Saved{Seq: s.Seq, Failed: err.Error()}
	case err != nil:
		d.cfg.Log.Warn("outputs are not saved", "stamp", s.Stamp, "err", err)
		return registry.Saved{Seq: s.Seq, Failed: short(err.Error())}
	case len(answer.To) > 0:
		d.cfg.Log.Info("outputs are saved", "stamp", s.Stamp, "files", answer.Files, "bytes", answer.Bytes, "took", time.Since(begun).Round(time.Millisecond))
	}
	return answer
}

// save copies the folders of the process that runs. Its end calls that off: it has an upload of its own.
func (d *dataManager) save(s registry.Save, answer *registry.Saved) (err error) {
	p, over := d.cfg.Process.Plan(), d.cfg.Process.Over()
	if over == nil || p.Outputs == nil || d.cfg.Loop.State().Phase != machine.Running {
		return errNothingRuns
	}
	if p.Outputs.Strategy == appdef.StrategyStream {
		return nil
	}
	ctx, cancel := context.WithCancelCause(d.ctx)
	defer cancel(nil)
	d.tasks.Go(func() {
		select {
		case <-over:
			cancel(errProcessOver)
		case <-ctx.Done():
		}
	})
	bounded, stop := d.withinStaging(ctx)
	defer stop()
	work, err := files.As(nil).Below(d.cfg.WorkDir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, work.Close()) }()
	for _, one := range p.Outputs.To {
		if one.To == "" {
			continue
		}
		if err := d.saveOutput(bounded, p, one, s.Stamp, work, answer); err != nil {
			return fmt.Errorf("output %s: %w", one.Name, err)
		}
	}
	return nil
}

func (d *dataManager) saveOutput(ctx context.Context, p plan.Plan, one plan.Output, stamp string, work files.Folder, answer *registry.Saved) (err error) {
	leave, err := d.leaveOf(ctx, p, one)
	if err != nil {
		return err
	}
	folder, err := work.Make(filepath.Join(p.Process.Folder, one.Name))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, folder.Close()) }()
	save := data.Save{Leave: leave, Stamp: stamp, Pause: restlessPause}
	if p.Outputs.Incremental {
		save.Since = d.saves.seen[one.Name]
	}
	saved, err := save.Run(ctx, folder, d.outputTransfer(p.Outputs))
	if err != nil {
		return err
	}
	if len(saved.Restless) > 0 {
		leftOut(answer, one.Name, saved.Restless)
		d.cfg.Log.Warn("files that are written to all the time are left out of a save", "output", one.Name, "stamp", stamp, "paths", strings.Join(saved.Restless, ", "))
	}
	if d.saves.seen == nil {
		d.saves.seen = map[string]data.Seen{}
	}
	d.saves.seen[one.Name] = saved.Seen
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
func (d *dataManager) awaitSaves() {
	d.saves.turn.Lock()
	d.saves.turn.Unlock() //nolint:staticcheck // whoever comes later finds no process
}
