package run

import (
	"path/filepath"
	"strings"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/paireport"
)

// paiLines is how many lines of a log a report is made from: more than any version of it tells.
const paiLines = 100

// reportPAI is the report of the instance that failed first.
func (r *runner) reportPAI(e end) {
	v := e.verdict
	if v == nil || v.Outcome != registry.Failed || v.First == "" {
		return
	}
	f := paireport.Facts{Class: v.Class, Reason: v.Cause, Solution: v.Advice}
	dir := filepath.Join(r.logDir, v.First)
	from, _ := r.attemptBegins(dir)
	if x := v.Exit; x != nil {
		f.Code, f.Signal, f.Message, f.OOM = x.Code, x.Signal, x.Why, x.Class == registry.ClassOOM
		for _, name := range []string{"stderr.log", "stdout.log"} {
			if at, began := from[name]; f.User == "" && began {
				f.User = strings.Join(tailOf(filepath.Join(dir, name), at, paiLines), "\n")
			}
		}
	}
	f.Runtime = strings.Join(tailOf(filepath.Join(dir, "agent.log"), 0, paiLines), "\n")
	version := appdef.PAI1
	if own := r.app.Settings.PAI.Version; own != "" {
		version = own
	}
	r.say("%s", strings.TrimSuffix(paireport.ExitReport(version, f), "\n"))
}
