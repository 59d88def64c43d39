package shim

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/muster-agent/muster/shim/files"
	"github.com/muster-agent/muster/shim/machine"
	"github.com/muster-agent/muster/shim/plan"
	"github.com/muster-agent/muster/shim/silence"
	"github.com/muster-agent/muster/shim/status"
)

// warnSilence is the kind of the warning that a program shows no sign of life.
const warnSilence = "silence"

// watchSilence warns, until ctx ends, while the program of the instance shows no sign of life.
func (a *agent) watchSilence(ctx context.Context, p plan.Plan, logDir string) {
	limit := plan.Seconds(p.Silence)
	if limit <= 0 {
		return
	}
	silence.Follow(ctx, limit, func() silence.Signs { return a.signs(logDir) }, a.tellSilence)
}

// signs are the signs of life of the process.
func (a *agent) signs(logDir string) silence.Signs {
	s := a.loop.State()
	if s.Phase != machine.Running {
		return silence.Signs{}
	}
	signs := silence.Signs{
		Attempt: s.Attempt, Step: s.Step, Progress: -1,
		Stdout: files.PlainSize(filepath.Join(logDir, "stdout.log")),
		Stderr: files.PlainSize(filepath.Join(logDir, "stderr.log")),
	}
	if f := a.progress.Fraction(); f != nil {
		signs.Progress = *f
	}
	return signs
}

// tellSilence tells users what was found.
func (a *agent) tellSilence(f silence.Finding) {
	in := a.loop.State().Instance.String()
	switch f.Kind {
	case silence.Silent:
		text := silenceText(a.id.appID, in, f.For)
		since := status.Stamp(time.Now().Add(-f.For))
		a.setSilent(&since)
		a.journal.Warn(warnSilence, text)
		a.log.Warn("no sign of life", "what", text)
		a.teller.tell(a.teller.watch.Silence(a.loop.State(), since, text, time.Now()))
	case silence.Heard:
		text := fmt.Sprintf("output from %s again after %s", in, f.For.Round(time.Second))
		a.setSilent(nil)
		a.journal.Mended(warnSilence, text)
		a.log.Info("a sign of life again", "what", text)
	case silence.Ended:
		a.setSilent(nil)
		a.journal.Mended(warnSilence, fmt.Sprintf("%s ended without more output", in))
	case silence.Nothing:
	}
}

// silenceText says where a user may look.
func silenceText(app, instance string, lasted time.Duration) string {
	at := app + "/" + instance
	return fmt.Sprintf("no output from %s for %s, and no checkpoint: see what it does with `muster exec %s -- ps -ef` "+
		"and `muster logs %s`; muster.silence changes the time, 0 is never",
		instance, lasted.Round(time.Second), at, at)
}

func (a *agent) setSilent(since *time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.silent = since
}
