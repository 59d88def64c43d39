package process

import (
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
)

// noFramework gives no environment: that of a framework needs a roster.
func noFramework(plan.Plan, registry.Roster) (env, files map[string]string) { return nil, nil }

// Install runs INSTALL in the container and ends the processes that it left.
func (p *Process) Install(ctx context.Context) error {
	s := p.Plan.Script
	if s == nil || !s.Has(plan.CommandInstall) {
		return nil
	}
	end, err := p.order(ctx, plan.CommandInstall, plan.Seconds(s.Timeout))
	if err != nil {
		return notRun(s, err)
	}
	if err := p.guards.now().Sweep(ctx); err != nil {
		return fmt.Errorf("INSTALL: end what it left: %w", err)
	}
	if end.OK() {
		p.Log.Info("INSTALL done", "output", end.files.Stdout)
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
	failed.Err = fmt.Errorf("INSTALL of %s: %s (%s)", nameOf(s), end.Why, p.logs.path(end.files.Stderr))
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
