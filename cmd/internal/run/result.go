package run

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/cmd/internal/console"
	"github.com/muster-agent/muster/cmd/internal/flags"
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/files"
	"github.com/muster-agent/muster/shim/journal"
	"github.com/muster-agent/muster/shim/machine"
	"github.com/muster-agent/muster/shim/status"
	"github.com/muster-agent/muster/shim/wording"
)

// finish writes result.json, says how it ended, and gives the exit code.
func (r *runner) finish(e end) error {
	result := r.result(e)
	var errs []error
	for _, dir := range r.resultDirs() {
		errs = append(errs, status.WriteJSON(filepath.Join(dir, "result.json"), result))
	}
	if err := errors.Join(errs...); err != nil {
		r.say("%s: %v", r.appID, err)
	}
	reported := r.report(e, result)
	if r.flags.PAIReport {
		r.reportPAI(e)
	}
	if r.tabular() {
		r.say("%s", r.logsHint())
	}
	if r.flags.JSON {
		enc := json.NewEncoder(r.streams.Out)
		enc.SetIndent("", "  ")
		if err := enc.Encode(result); err != nil {
			return err
		}
	} else {
		line := wording.Printable(headline(result, !reported))
		line = console.Color(r.streams.Out, line, len(result.App), result.Outcome)
		_ = console.Print(r.streams.Out, line+"\n") // the exit code says it too
	}
	if result.Code == 0 {
		return nil
	}
	return exit.Silent{Code: result.Code}
}

// refuse is the result of a run that a bad definition kept from beginning. Nothing of it is written to a file.
func (f *Options) refuse(s console.Streams, ref string, err error) error {
	if !f.JSON || exit.CodeOf(err) != exit.Definition {
		return nil
	}
	problems, ok := errors.AsType[appdef.Problems](err)
	if !ok {
		problems = appdef.Problems{appdef.Place{File: ref}.Problem(err.Error(), "an app package", "")}
	}
	name, ok := strings.CutPrefix(ref, "catalog:")
	if !ok {
		name = filepath.Base(flags.Absolute(ref))
	}
	result := status.ResultFile{
		Version: 1, App: f.AppID, Name: name, Instances: []status.Instance{}, Code: exit.Definition,
		Ending: status.Ending{
			Outcome: string(registry.Failed), Class: new(string(registry.ClassDefinition)), Cause: problems[0].String(),
		},
	}
	for _, p := range problems {
		result.Problems = append(result.Problems, p)
	}
	return console.PrintJSON(s.Out, result)
}

// headline is the result in one line, with the cause of a run that did not succeed unless a person has just read it.
func headline(f status.ResultFile, why bool) string {
	took := time.Duration(f.Times.Total * float64(time.Second)).Round(100 * time.Millisecond)
	s := fmt.Sprintf("%s: %s after %s, %s", f.App, f.Outcome, took, resumed(f))
	if f.Failures > 0 && f.Restarts > 0 {
		s += appdef.Counted(f.Failures, "failure") + ", "
	}
	s += appdef.Counted(f.Restarts, "restart") + ", " + appdef.Counted(f.Generations, "generation")
	if _, lost, ok := strings.Cut(f.Cause, registry.CasualtiesMark); ok && f.Outcome == string(registry.Succeeded) {
		s += registry.CasualtiesMark + lost // a partial success is none that may go unseen
	}
	if why && f.Outcome != string(registry.Succeeded) && f.Cause != "" && f.Cause != f.Outcome {
		s += ": " + f.Cause
	}
	return s
}

// resumed says of a run without restarts that it began where an earlier run had ended.
func resumed(f status.ResultFile) string {
	for _, in := range f.Instances {
		if in.ResumedStep != nil && f.Restarts == 0 && f.Generations <= 1 {
			return fmt.Sprintf("resumed from step %d, ", *in.ResumedStep)
		}
	}
	return ""
}

func (r *runner) result(e end) status.ResultFile {
	f := status.ResultFile{
		Version: 1, App: r.appID, Run: r.runID, Name: r.app.Name, Instances: []status.Instance{}, Problems: []any{},
		WorkDir: r.workDir, LogDir: r.logDir, Verdict: e.verdict,
	}
	switch {
	case e.verdict != nil:
		f.Outcome, f.Cause, f.Advice = string(e.verdict.Outcome), e.verdict.Cause, e.verdict.Advice
		f.Code = exit.Of(*e.verdict, "")
		if e.verdict.Class != "" {
			class := string(e.verdict.Class)
			f.Class = &class
		}
		r.unpublished(&f)
		if e.verdict.First != "" {
			f.First = &e.verdict.First
		}
	case e.interrupted != 0:
		f.Outcome, f.Cause, f.Code = "interrupted", fmt.Sprintf(causeSignal, e.interrupted), 128+int(e.interrupted)
	default:
		r.brokenOff(e, &f)
	}
	history := r.history()
	f.Generations = history.generations()
	f.Times = history.times()
	f.Times.Total = time.Since(r.started).Seconds()
	f.Times = f.Times.Rounded()
	for _, c := range r.agents {
		var in status.Instance
		if err := status.ReadJSON(filepath.Join(r.logDir, c.instance.String(), "last.json"), &in); err != nil ||
			in.Since.Before(status.Stamp(r.started)) {
			in = status.Instance{Version: 1, Identity: status.IdentityOf(c.instance), Phase: "unknown"}
		}
		f.Restarts += in.Restarts
		f.Failures += in.Failures
		f.Instances = append(f.Instances, in)
	}
	return f
}

// unpublished has a success say which agents could not give their outputs their names.
func (r *runner) unpublished(f *status.ResultFile) {
	var names []string
	for _, c := range r.agents {
		c.mu.Lock()
		if f.Code == 0 && c.signal == 0 && c.code == exit.Registry {
			names = append(names, c.instance.String())
		}
		c.mu.Unlock()
	}
	if len(names) == 0 {
		return
	}
	f.Code = exit.Registry
	f.Advice = "outputs of " + strings.Join(names, ", ") + " are not at their place, and there is no _SUCCESS: " +
		"agent.log says why; muster agent with this app id, these instances and --run " + r.runID + " goes on with it"
}

// howToResume says how an interrupted run is run again. The embedded registry has forgotten it by then.
func (r *runner) howToResume() string {
	again := fmt.Sprintf("the same command with --app-id %s --work-dir %s ", r.appID, r.workDir)
	if _, embedded := r.address.Socket(); embedded {
		return again + "begins a new run from its checkpoints"
	}
	return again + "resumes this run"
}

// brokenOff is a run whose agents ended without a verdict. One of them that met a fault of muster's own would meet
// it again: the run has failed. Else it is interrupted.
func (r *runner) brokenOff(e end, f *status.ResultFile) {
	f.Outcome, f.Code = "interrupted", exit.Internal
	f.Advice = "each agent.log has the agent's own words; " + r.howToResume()
	var agent agentError
	switch {
	case errors.As(e.failure, &agent):
		f.Cause = agent.Error()
		if agent.signal == 0 && agent.code != 0 {
			f.Code = agent.code
		}
		first := agent.child.instance.String()
		f.First = &first
		if f.Code == exit.Internal {
			f.Outcome, f.Class = string(registry.Failed), new(string(registry.ClassMuster))
			f.Advice = "this is a fault in muster; each agent.log has the agent's own words"
		}
	case e.failure != nil:
		f.Cause = e.failure.Error()
	default:
		f.Cause = causeAgentsEnded
	}
}

// history is what the agents of this run went through, by instance.
type history map[string][]journal.Line

func (r *runner) history() history {
	h := history{}
	for _, c := range r.agents {
		file, err := files.OpenPlain(filepath.Join(r.logDir, c.instance.String(), journal.File))
		if err != nil {
			continue
		}
		lines := bufio.NewScanner(file)
		for lines.Scan() {
			var m journal.Line
			if json.Unmarshal(lines.Bytes(), &m) == nil && !m.At.Before(status.Stamp(r.started)) {
				h[m.Instance] = append(h[m.Instance], m)
			}
		}
		_ = file.Close() // only read
	}
	return h
}

// generations counts those that were formed since the start of this command.
func (h history) generations() int {
	seen := map[int]bool{}
	for _, moments := range h {
		for _, m := range moments {
			if m.To == machine.Running && m.Generation > 0 {
				seen[m.Generation] = true
			}
		}
	}
	return len(seen)
}

// times are the seconds that the slowest instance spent in each part.
func (h history) times() status.Times {
	var t status.Times
	for _, moments := range h {
		var own status.Times
		ran := false
		for i, m := range moments {
			if i+1 == len(moments) {
				break
			}
			took := moments[i+1].At.Sub(m.At).Seconds()
			switch m.To {
			case machine.Staging:
				own.Staging += took
			case machine.Running:
				own.Running += took
				ran = true
			case machine.Installed, machine.Waiting, machine.Standby:
				if ran {
					own.Restarting += took
				} else {
					own.Barrier += took
				}
			case machine.Stopping, machine.Backoff, machine.Fenced:
				own.Restarting += took
			case machine.Starting, machine.Claiming, machine.Holding, machine.Finishing, machine.Leaving,
				machine.Superseded, machine.Done:
			}
		}
		t.Staging, t.Barrier = max(t.Staging, own.Staging), max(t.Barrier, own.Barrier)
		t.Running, t.Restarting = max(t.Running, own.Running), max(t.Restarting, own.Restarting)
	}
	return t
}
