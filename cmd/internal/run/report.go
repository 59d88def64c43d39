package run

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/muster-agent/muster/cmd/internal/troubles"
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/files"
	"github.com/muster-agent/muster/shim/progress"
	"github.com/muster-agent/muster/shim/status"
)

// reportLines is how much of a log a report shows, and besideLines how much of a second one.
const (
	reportLines = 20
	besideLines = 5
)

// report tells a person why it failed: the cause, the end of the first failed instance's log, its path.
// It tells whether there was anything to say.
func (r *runner) report(e end, f status.ResultFile) bool {
	if f.Code == 0 || f.Outcome == string(registry.Stopped) || e.interrupted != 0 {
		return false
	}
	r.say("\n%s: %s: %s", f.App, f.Outcome, f.Cause)
	if f.Advice != "" {
		r.say("  %s", f.Advice)
	}
	switch v := f.Verdict; {
	case f.Class == nil:
	case *f.Class != string(registry.ClassApp):
		r.say("  help: muster help errors %s", *f.Class)
	case v != nil && v.Exit != nil: // the program's own words say more of its failures
		if said := troubles.Heard(v.Exit.LastOutput); said != "" {
			r.say("  help: muster help errors %s", said)
		}
	}
	if f.First != nil {
		r.lastWords(e, filepath.Join(r.logDir, *f.First), *f.First)
	}
	return true
}

// applicationErr is where a package's script keeps what its program says on stderr (Execute of resource_management).
const applicationErr = "application.err"

// lastWords shows the end of what the process of an instance said, or else of what its agent did.
func (r *runner) lastWords(e end, dir, instance string) {
	from, known := r.attemptBegins(dir)
	files := []string{
		filepath.Join(dir, "stderr.log"), filepath.Join(r.workDir, instance, applicationErr),
		filepath.Join(dir, "stdout.log"),
	}
	started, quoted := false, false
	for _, path := range files {
		begin, began := from[filepath.Base(path)]
		started = started || began
		ofScript := filepath.Base(path) == applicationErr && started
		if e.verdict == nil || known && !began && !ofScript { // no process was started: what stands there is older
			continue
		}
		most := reportLines
		if quoted {
			most = besideLines
		}
		if own := tailOf(path, begin, most); len(own) > 0 {
			r.quote(own, path)
			quoted = true
		}
	}
	if quoted {
		return
	}
	if install := filepath.Join(dir, "errors-1.txt"); e.verdict != nil && strings.Contains(e.verdict.Cause, install) {
		if own := tailOf(install, 0, reportLines); len(own) > 0 {
			r.quote(own, install)
			return
		}
	}
	agentLog := filepath.Join(dir, "agent.log")
	lines := r.words(instance)
	if len(lines) == 0 {
		const most = 200 // few of them tell of trouble
		lines = without(strings.Join(tailOf(agentLog, 0, most), "\n"), everyday, reportLines)
	}
	if len(lines) > 0 {
		r.quote(lines, fmt.Sprintf("its agent (%s)", agentLog))
		return
	}
	r.say("\nit wrote nothing; what its agent did: %s", agentLog)
}

func (r *runner) quote(lines []string, of string) {
	r.say("\n%s of %s:", lastOnes(len(lines)), of)
	for _, l := range lines {
		r.say("  %s", l)
	}
}

func lastOnes(n int) string {
	if n == 1 {
		return "last line"
	}
	return fmt.Sprintf("last %d lines", n)
}

// attemptBegins is where the last attempt's output begins in each log, as the agent of this run left it;
// false: it left nothing. A log that is not named has nothing of this run's agent.
func (r *runner) attemptBegins(dir string) (map[string]int64, bool) {
	var left status.ExitFile
	err := status.ReadJSON(filepath.Join(dir, "exit.json"), &left)
	if err != nil || left.App != r.appID || left.Verdict == nil || left.Verdict.Run != r.runID {
		return nil, false
	}
	return left.LogsFrom, true
}

// words are the last lines that an agent wrote itself, without those of every day.
func (r *runner) words(instance string) []string {
	for _, c := range r.agents {
		if c.instance.String() == instance {
			return without(c.words.String(), everyday, reportLines)
		}
	}
	return nil
}

// everyday tells of a line of an agent's log that it reports no trouble. The warnings of a definition were printed
// before the run began.
func everyday(line string) bool {
	if strings.HasPrefix(line, "warning: ") || strings.Contains(line, `"planned with a warning"`) {
		return true
	}
	for _, level := range []string{"INFO", "DEBUG"} {
		if strings.Contains(line, " level="+level+" ") || strings.Contains(line, `"level":"`+level+`"`) {
			return true
		}
	}
	return false
}

// ofProgress tells a line that is for the agent, not for a person.
func ofProgress(line string) bool {
	_, reported := progress.Reported(line)
	return reported
}

// without are the last n lines of a text that are not to be left out.
func without(text string, out func(string) bool, n int) []string {
	var kept []string
	if strings.Trim(text, "\n") == "" {
		return nil
	}
	for l := range strings.SplitSeq(strings.TrimRight(text, "\n"), "\n") {
		if !out(l) {
			kept = append(kept, l)
		}
	}
	return kept[max(0, len(kept)-n):]
}

// tailOf is the last n lines of a file from a place on, of its last 64 KiB. A file that is shorter than
// that place was rotated since.
func tailOf(path string, from int64, n int) []string {
	f, err := files.OpenPlain(path) // it is in a folder of the process's
	if err != nil {
		return nil
	}
	defer f.Close()
	const most = 64 << 10
	info, err := f.Stat()
	if err != nil {
		return nil
	}
	if info.Size() < from {
		from = 0
	}
	at := max(from, info.Size()-most)
	text := make([]byte, info.Size()-at)
	read, err := f.ReadAt(text, at)
	if err != nil && read == 0 {
		return nil
	}
	return without(string(text[:read]), ofProgress, n)
}
