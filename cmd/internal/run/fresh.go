package run

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/plan"
)

// checkFresh refuses --fresh for an app whose checkpoints lie outside its work folder: other runs may need them.
func (r *runner) checkFresh() error {
	if !r.flags.Fresh {
		return nil
	}
	for _, c := range r.app.App.Components {
		// Its faults have been told.
		p, _ := plan.Build(r.app.App, ownRequest(c.Name, r.app.ClientVars(), r.hostFacts()))
		if to := p.Checkpoint.Sync; to != "" {
			return exit.Usagef("run: --fresh: component %s has copies of its checkpoints in %s "+
				"(muster.checkpoint.sync), which would be brought back: name another folder", c.Name, to)
		}
		if dir := p.Checkpoint.Dir; dir != "" && dir != plan.LocalCheckpoints {
			return exit.Usagef("run: --fresh: component %s has its checkpoints in %s, where other runs may need them: "+
				"move them away yourself, or name another folder", c.Name, dir)
		}
	}
	return nil
}

// setAside gives the checkpoints of earlier runs in this work folder another name, so that this run finds none.
func (r *runner) setAside() error {
	if !r.flags.Fresh {
		return nil
	}
	dir := filepath.Join(r.workDir, filepath.Base(plan.LocalCheckpoints))
	aside := dir + ".before-" + r.runID
	err := os.Rename(dir, aside)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return exit.With(exit.Forbidden, fmt.Errorf("--fresh: %w", err))
	}
	fmt.Fprintf(r.streams.Err, "%s: starts from the beginning; earlier checkpoints are kept in %s\n", r.appID, aside)
	return nil
}
