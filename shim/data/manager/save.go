package manager

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/data"
	"github.com/muster-agent/muster/shim/journal"
	"github.com/muster-agent/muster/shim/machine"
	"github.com/muster-agent/muster/shim/plan"
	"github.com/muster-agent/muster/shim/wait"
	"github.com/muster-agent/muster/shim/wording"
)

// Interim saves run beside everything else: neither the machine nor the renewals nor the process wait for them.

var (
	errNothingRuns = errors.New("no process runs")
	errProcessOver = errors.New("the process has ended")
)

// interimSaves is the state of the interim saves.
type interimSaves struct {
	mu    sync.Mutex
	asked int // number of the last save that was asked for

	turn sync.Mutex           // one save at a time
	seen map[string]data.Seen // by output, after the last save; turn guards it
}

// next tells that a save is asked for the first time.
func (s *interimSaves) next(seq int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if seq <= s.asked {
		return false
	}
	s.asked = seq
	return true
}

// SaveAsked does a save that a directive asks for, once.
func (m *Manager) SaveAsked(to registry.Directive) {
	membership := m.cfg.Membership()
	if to.Save == nil || to.Run != m.cfg.Self.Run || to.Act == registry.ActStop || membership == nil ||
		!m.saves.next(to.Save.Seq) {
		return
	}
	if c := m.cfg.App.Component(membership.Instance().Component); c == nil || !data.LeavesOutputs(*c) {
		return
	}
	m.tasks.Go(func() { m.answerSave(membership, *to.Save) })
}

// plainStamp is the form of a save's stamp, which comes from the registry.
var plainStamp = regexp.MustCompile(`^[0-9A-Za-z_-]{1,64}$`)

func (m *Manager) answerSave(membership Membership, s registry.Save) {
	answer := m.saveInTurn(s)
	if err := membership.Saved(m.ctx, answer); err != nil { // it retries until the membership ends
		m.cfg.Log.Debug("save not reported", "err", err)
	}
}

// saveInTurn does one save at a time. The registry is told afterwards, since it may be unreachable.
func (m *Manager) saveInTurn(s registry.Save) registry.Saved {
	if !plainStamp.MatchString(s.Stamp) { // it names a folder beside the outputs
		return registry.Saved{Seq: s.Seq, Failed: fmt.Sprintf("stamp %q of the directive is no time", s.Stamp)}
	}
	m.saves.turn.Lock()
	defer m.saves.turn.Unlock()
	begun, answer := time.Now(), registry.Saved{Seq: s.Seq}
	err := m.save(s, &answer)
	switch {
	case errors.Is(err, errNothingRuns):
		return registry.Saved{Seq: s.Seq, Failed: err.Error()}
	case err != nil:
		m.cfg.Log.Warn("outputs not saved", "stamp", s.Stamp, "err", err)
		m.cfg.Notices.Event(journal.EventSaved, fmt.Sprintf("save %s failed: %v", s.Stamp, err), time.Now())
		return registry.Saved{Seq: s.Seq, Failed: wording.Short(err.Error())}
	case len(answer.To) > 0:
		m.cfg.Log.Info("outputs saved", "stamp", s.Stamp, "files", answer.Files, "bytes", answer.Bytes, "took",
			time.Since(begun).Round(time.Millisecond))
		m.cfg.Notices.Event(journal.EventSaved, fmt.Sprintf("save %s: %s in %s", s.Stamp,
			appdef.Counted(answer.Files, "file"), strings.Join(answer.To, ", ")), time.Now())
	}
	return answer
}

// save copies the folders of the running process. The end of the process cancels it: its outputs are left as a whole
// then.
func (m *Manager) save(s registry.Save, answer *registry.Saved) (err error) {
	p, over := m.cfg.Process.Plan(), m.cfg.Process.Over()
	if over == nil || p.Outputs == nil || m.cfg.Loop.State().Phase != machine.Running {
		return errNothingRuns
	}
	if p.Outputs.Strategy == appdef.StrategyStream {
		return nil
	}
	ctx, cancel := context.WithCancelCause(m.ctx)
	defer cancel(nil)
	m.tasks.Go(func() {
		select {
		case <-over:
			cancel(errProcessOver)
		case <-ctx.Done():
		}
	})
	bounded, stop := m.withinStaging(ctx)
	defer stop()
	for _, one := range p.Outputs.To {
		if one.To == "" {
			continue
		}
		if err := m.saveOutput(bounded, p, one, s.Stamp, answer); err != nil {
			return fmt.Errorf("output %s: %w", one.Name, err)
		}
	}
	return nil
}

func (m *Manager) saveOutput(
	ctx context.Context, p plan.Plan, one plan.Output, stamp string, answer *registry.Saved,
) (err error) {
	leave, err := m.leaveOf(ctx, p, one)
	if err != nil {
		return err
	}
	folder, err := m.outputFolder(p, one)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, folder.Close()) }()
	save := data.Save{Leave: leave, Stamp: stamp, Pause: restlessPause}
	if p.Outputs.Incremental {
		save.Since = m.saves.seen[one.Name]
	}
	saved, err := save.Run(ctx, folder, m.outputTransfer(p.Outputs))
	if err != nil {
		return err
	}
	if len(saved.Restless) > 0 {
		leftOut(answer, one.Name, saved.Restless)
		m.cfg.Log.Warn("files that keep changing are not part of the save", "output", one.Name, "stamp",
			stamp, "paths", strings.Join(saved.Restless, ", "))
	}
	if m.saves.seen == nil {
		m.saves.seen = map[string]data.Seen{}
	}
	m.saves.seen[one.Name] = saved.Seen
	answer.Files, answer.Bytes = answer.Files+saved.Files, answer.Bytes+saved.Bytes
	answer.To = append(answer.To, strings.TrimRight(one.To, "/")+"/"+cmp.Or(p.Outputs.Interim, plan.DefaultSaves)+stamp)
	return nil
}

// mostLeftOut is how many files an answer names: the answer is part of the member's record.
const mostLeftOut = 10

func leftOut(answer *registry.Saved, output string, paths []string) {
	for _, path := range paths {
		if len(answer.LeftOut) == mostLeftOut {
			answer.LeftOut[mostLeftOut-1] = "and more"
			return
		}
		answer.LeftOut = append(answer.LeftOut, wording.Short(output+"/"+path))
	}
}

// restlessPause gives a program time to finish a file that changed while it was copied.
func restlessPause(ctx context.Context) error { return wait.For(ctx, time.Second) }

// awaitSaves waits for the save that the end of the process has cancelled: no file of it may come after the outputs
// were settled.
func (m *Manager) awaitSaves() {
	m.saves.turn.Lock()
	m.saves.turn.Unlock() //nolint:staticcheck // a later save finds no process
}
