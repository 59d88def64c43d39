package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/packages/fetch"
	"github.com/muster-agent/muster/packages/hdfs"
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/fault"
	"github.com/muster-agent/muster/shim/files"
	"github.com/muster-agent/muster/shim/hadoop"
	"github.com/muster-agent/muster/shim/machine"
	"github.com/muster-agent/muster/shim/plan"
	"github.com/muster-agent/muster/shim/stage"
)

// stageTimeout is that staging took longer than it may.
func stageTimeout(limit time.Duration) error {
	return fault.Of(registry.ClassTimeout, fmt.Errorf("not done after %s (muster.stage.timeout)", limit))
}

// dataFault sorts what went wrong: what the definition can mend is its own fault.
func dataFault(err error) error {
	if err == nil {
		return nil
	}
	if slices.Contains([]registry.Class{registry.ClassTimeout, registry.ClassDefinition, registry.ClassNotPermitted}, fault.ClassOf(err)) {
		return err
	}
	if errors.Is(err, hdfs.ErrKerberos) && !errors.Is(err, fetch.ErrUnreachable) { // a KDC that is away is no refusal
		return fault.NotPermitted(err)
	}
	_, taken := errors.AsType[*stage.TakenError](err)
	_, twice := errors.AsType[*stage.NameError](err)
	if taken || twice || errors.Is(err, stage.ErrNoStore) {
		return fault.Definition(err)
	}
	return fault.Data(err)
}

// fromStore tells a stage item that comes from a store, or lies there.
func fromStore(item plan.StageItem) bool {
	return slices.Contains([]string{plan.StageCode, plan.StageCodeBeside, plan.StageOutput, plan.StageCopy, plan.StageUnpacked}, item.Kind)
}

// transfer is how this agent moves files.
func (a *agent) transfer() stage.Transfer {
	return stage.Transfer{
		Report: func(p stage.Progress) {
			a.moves(p)
			if p.Ended && p.Took < tellTransfer { // who asked for it says what came
				return
			}
			a.log.Info("transfer", "files", p.Files, "of", p.All, "bytes", p.Bytes, "bytes_per_second", p.Rate(), "took", p.Took.Round(time.Millisecond))
		},
		Again: func(file, why string) { a.log.Warn("transfer is tried again", "file", file, "cause", why) },
	}
}

// moves has status say how far the files are that the instance waits for; those of a save are nobody's concern.
func (a *agent) moves(p stage.Progress) {
	staging := a.loop.State().Phase == machine.Staging
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case p.Ended:
		a.moving = ""
	case staging, a.leaving:
		a.moving = p.String()
	}
}

// way says what is brought or left now; the caller has the lock.
func (a *agent) way() string {
	const leaving = "its process is over, its outputs are being left"
	switch {
	case a.leaving && a.moving != "":
		return leaving + ": " + a.moving
	case a.leaving:
		return leaving
	case a.moving != "":
		return "inputs: " + a.moving
	}
	return ""
}

// leaves has status say that outputs are left, and the terminal where it takes longer than a moment.
func (a *agent) leaves() (over func()) {
	set := func(on bool) string {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.leaving = on
		return a.way()
	}
	text := set(true)
	late := time.AfterFunc(tellLeaving, func() { a.event(eventLeaving, text, time.Now()) })
	return func() {
		late.Stop()
		set(false)
	}
}

// tellLeaving is how long the leaving of outputs takes at least of which the terminal is told.
const tellLeaving = 2 * time.Second

// tellTransfer is how long a transfer takes at least of which a line is written.
const tellTransfer = 5 * time.Second

// bringData brings what the plan reads, and makes room for what it leaves.
func (r stageRoom) bringData(ctx context.Context, p plan.Plan, in registry.Instance, work files.Folder) error {
	if limit := seconds(p.StageTimeout); limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, limit, stageTimeout(limit))
		defer cancel()
	}
	if err := r.ownStore(p, work); err != nil {
		return err
	}
	for _, item := range p.Stage {
		var err error
		switch item.Kind {
		case plan.StageCode, plan.StageCodeBeside:
			err = r.bringCode(ctx, p, item, work)
		case plan.StageOutput:
			err = r.makeOutput(ctx, p, item)
		}
		if err != nil {
			return dataFault(fmt.Errorf("%s %s: %w", item.Name, item.From, err))
		}
	}
	if err := r.bringFiles(ctx, p, work); err != nil {
		return dataFault(err)
	}
	if p.PAI != nil {
		r.checkDataDir(p.PAI.DataDir)
	}
	if p.Inputs == nil && p.Outputs == nil {
		return nil
	}
	folder, err := work.Make(p.Process.Folder)
	if err != nil {
		return err
	}
	err = r.bringInputs(ctx, p, work, folder)
	if err == nil {
		err = r.roomForOutputs(ctx, p, in, work, folder)
	}
	return dataFault(errors.Join(err, folder.Close()))
}

// refuseData tells before anything is made what data this muster cannot bring.
func refuseData(app appdef.App, vars map[string]string, found hadoop.DefaultFS) error {
	var bad appdef.Problems
	for _, c := range app.Components {
		s := c.Settings
		if c.Instances == 0 || len(s.Inputs.From)+len(s.Outputs.To)+len(s.Files)+len(s.Archives) == 0 && app.Settings.PAI.Version == "" {
			continue
		}
		request := plan.Request{Component: c.Name, Digest: "-", Allocation: plan.Allocation{User: plan.AnyUser, Vars: vars}, Starts: true}
		found.Into(&request)
		_, problems := plan.Build(app, request)
		for _, p := range problems.Errors() {
			if !slices.Contains(bad, p) {
				bad = append(bad, p)
			}
		}
	}
	return exit.OfProblems(bad)
}
