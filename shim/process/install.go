package process

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"syscall"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/fault"
	"github.com/muster-agent/muster/shim/plan"
	"github.com/muster-agent/muster/shim/sandbox"
	"github.com/muster-agent/muster/shim/script"
)

// noFramework gives no environment: that of a framework needs a roster.
func noFramework(plan.Plan, registry.Roster) (env, files map[string]string) { return nil, nil }

// Install runs INSTALL in the container, and behind it that of each add-on. It ends the processes that they left.
func (p *Process) Install(ctx context.Context) error {
	s := p.Plan.Script
	if s == nil {
		return nil
	}
	if s.Has(plan.CommandInstall) {
		if err := p.install(ctx, script.Order{Command: plan.CommandInstall}, nameOf(s), s.Timeout); err != nil {
			return err
		}
	}
	for i, a := range s.Addons {
		o := script.Order{Command: plan.CommandInstall, Addon: i + 1}
		if err := p.install(ctx, o, cmp.Or(a.File, "the command")+" of the add-on "+a.Name, a.Timeout); err != nil {
			return err
		}
	}
	return nil
}

// install runs one INSTALL, of what has that name, for so many seconds at most.
func (p *Process) install(ctx context.Context, o script.Order, name string, timeout float64) error {
	end, err := p.carryOut(ctx, o, plan.Seconds(timeout))
	if err != nil {
		return notRun(p.Plan.Script, err)
	}
	if err := p.guards.now().Sweep(ctx); err != nil {
		return fmt.Errorf("INSTALL: end what it left: %w", err)
	}
	if end.OK() {
		p.Log.Info("INSTALL done", "of", name, "output", end.files.Stdout)
		return nil
	}
	failed := &fault.Error{
		Class: registry.ClassApp, Command: true, Code: end.Code, Signal: end.signal,
	}
	switch used := p.guards.now().Usage(); { // nothing else has run in the container yet
	case end.TimedOut:
		failed.Class = registry.ClassTimeout
	case used.OOMKills > 0:
		failed.Class, end.Why = registry.ClassOOM, outOfMemory(used)
		failed.Peak, failed.Limit = used.Peak, used.Limit
	}
	failed.Err = fmt.Errorf("INSTALL of %s: %s (%s)", name, end.Why, p.logs.path(end.files.Stderr))
	return failed
}

// notRun explains why INSTALL could not be run. A missing interpreter stays missing.
func notRun(s *plan.Script, err error) error {
	_, start := errors.AsType[*sandbox.StartError](err)
	switch {
	case start && errors.Is(err, fs.ErrNotExist) && s.File != "":
		return fault.Definition(fmt.Errorf("INSTALL: %w; the scripts need Python 3.8 or newer, there as %s: put it "+
			"into the image or onto the host, or name another by muster.python", err, s.Python))
	case start && (errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) ||
		errors.Is(err, syscall.ENOEXEC)):
		return fault.Definition(fmt.Errorf("INSTALL: %w", err))
	}
	return fmt.Errorf("INSTALL: %w", err)
}

// nameOf is the script's name for people.
func nameOf(s *plan.Script) string {
	if s.File != "" {
		return s.File
	}
	return "metainfo's commands"
}

// pathOf is the path of the script.
func pathOf(s *plan.Script) string { return filepath.Join(s.Folder, s.File) }
