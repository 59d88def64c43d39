package manager

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/registry/consul"
	"github.com/muster-agent/muster/shim/data"
	"github.com/muster-agent/muster/shim/data/stores"
	"github.com/muster-agent/muster/shim/data/transfer"
	"github.com/muster-agent/muster/shim/fault"
	"github.com/muster-agent/muster/shim/files"
	"github.com/muster-agent/muster/shim/journal"
	"github.com/muster-agent/muster/shim/machine"
	"github.com/muster-agent/muster/shim/plan"
	"github.com/muster-agent/muster/shim/sandbox"
	"github.com/muster-agent/muster/shim/store"
	"github.com/muster-agent/muster/shim/store/hdfs"
)

// Manager brings the inputs of this agent's instance, feeds its process, and leaves its outputs.
type Manager struct {
	cfg   Config
	ctx   context.Context //nolint:containedctx // ends with Close
	stop  context.CancelFunc
	tasks sync.WaitGroup
	saves interimSaves

	mu        sync.Mutex
	callOff   context.CancelCauseFunc // cancels the work that follows the end of the process
	leaving   bool                    // the process has ended and its outputs are being left
	moving    string                  // progress of the files that are brought or left now; "": none are
	inputList string                  // list of the process's input files; "": it gets none
	feeding   *feeding                // what the process reads from stdin; nil: nothing
	gathered  *gathered               // stdout where it is an output; nil: none has been read
	owed      []owedOutput            // prepared and not settled yet
	founded   time.Time               // of the app, for an agent that finds its run's verdict
	undone    error                   // what the job's success needs of this agent and it could not do
}

// Config is what a Manager is made from.
type Config struct {
	Log     *slog.Logger
	App     appdef.App
	Self    Self
	WorkDir string // of the run
	Loop    *machine.Agent
	Notices Notices
	Gang    Gang
	// Membership is this agent's; nil: the agent has not joined.
	Membership func() Membership
	Process    Process
	Stores     *stores.Stores
}

// Self is which agent this is.
type Self struct {
	AppID, Run string
	Inc        string             // incarnation
	Instance   *registry.Instance // that the agent was given; nil: any
}

// Notices tells users of conditions that last, and of work that takes long.
type Notices struct {
	Warn, Mended func(kind, text string)
	Event        func(kind, text string, at time.Time)
}

// Gang is what the manager asks about the other agents.
type Gang struct {
	// Live are the instances with an agent at work.
	Live func(ctx context.Context, app string) (map[registry.Instance]bool, error)
	// Status is what the registry knows of the app.
	Status func(ctx context.Context, app string) (consul.Status, error)
	// Counts are the numbers of instances that the gang goes by.
	Counts func() map[string]int
	// PlanAgain plans for an instance that will not start.
	PlanAgain func(ctx context.Context, in registry.Instance) (plan.Plan, error)
	// Dead tells that an agent of this host has ended.
	Dead func(registry.Member) bool
}

// Membership is the index that this agent holds.
type Membership interface {
	Instance() registry.Instance
	Founded() time.Time
	Saved(ctx context.Context, saved registry.Saved) error
}

// Process is the process of the instance.
type Process struct {
	Plan func() plan.Plan
	Over func() <-chan struct{} // closed when the current attempt has ended; nil: there is none
	// Fail ends the process because of its data.
	Fail func(why string, err error)
	// Beside runs a program in the process's confinement, with the words that it has in the process's environment.
	Beside func(ctx context.Context, argv func(env map[string]string) []string) (*sandbox.Session, error)
}

// New makes a manager that lives until Close: it leaves outputs after ctx is cancelled, too.
func New(ctx context.Context, cfg Config) *Manager {
	m := &Manager{cfg: cfg}
	m.ctx, m.stop = context.WithCancel(context.WithoutCancel(ctx))
	return m
}

// CutShort ends all waiting: the agent was asked to end after its machine had ended. Outputs that are not published
// stay so.
func (m *Manager) CutShort() { m.stop() }

// Close ends the work of the manager's goroutines and waits for them.
func (m *Manager) Close() {
	m.stop()
	m.tasks.Wait()
}

// Fault gives an error its class. The definition can mend a wrong scheme, an output that exists, and two inputs of one
// name.
func Fault(err error) error {
	if err == nil {
		return nil
	}
	if slices.Contains([]registry.Class{registry.ClassTimeout, registry.ClassDefinition, registry.ClassNotPermitted},
		fault.ClassOf(err)) {
		return err
	}
	if errors.Is(err, hdfs.ErrKerberos) && !errors.Is(err, store.ErrUnreachable) { // an unreachable KDC is no refusal
		return fault.NotPermitted(err)
	}
	_, taken := errors.AsType[*data.TakenError](err)
	_, twice := errors.AsType[*transfer.NameError](err)
	if taken || twice || errors.Is(err, store.ErrScheme) {
		return fault.Definition(err)
	}
	return fault.Data(err)
}

// Transfer is how this agent moves files.
func (m *Manager) Transfer() transfer.Transfer {
	return transfer.Transfer{
		Report: func(p transfer.Progress) {
			m.noteProgress(p)
			if p.Ended && p.Took < tellTransfer { // the caller logs the sum
				return
			}
			m.cfg.Log.Info("files transferred", "files", p.Files, "of", p.All, "bytes", p.Bytes,
				"bytes_per_second", p.Rate(), "took", p.Took.Round(time.Millisecond))
		},
		Again: func(file, why string) { m.cfg.Log.Warn("transfer retried", "file", file, "cause", why) },
	}
}

// noteProgress shows in the status how far the files are that the instance waits for. Interim saves are not shown.
func (m *Manager) noteProgress(p transfer.Progress) {
	staging := m.cfg.Loop.State().Phase == machine.Staging
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case p.Ended:
		m.moving = ""
	case staging, m.leaving:
		m.moving = p.String()
	}
}

// Activity is what the manager brings or leaves now, for the status; "": nothing.
func (m *Manager) Activity() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	const leaving = "its process is over, its outputs are being left"
	switch {
	case m.leaving && m.moving != "":
		return leaving + ": " + m.moving
	case m.leaving:
		return leaving
	case m.moving != "":
		return "inputs: " + m.moving
	}
	return ""
}

// showLeaving shows in the status that outputs are being left, and tells the terminal if it takes long.
func (m *Manager) showLeaving() (over func()) {
	set := func(on bool) {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.leaving = on
	}
	set(true)
	text := m.Activity()
	done := make(chan struct{})
	m.tasks.Go(func() {
		late := time.NewTimer(tellLeaving)
		defer late.Stop()
		select {
		case at := <-late.C:
			m.cfg.Notices.Event(journal.EventLeaving, text, at)
		case <-done:
		}
	})
	return func() {
		close(done)
		set(false)
	}
}

// Leaving tells that outputs are being left, or wait for the verdict.
func (m *Manager) Leaving() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.leaving || len(m.owed) > 0
}

// tellLeaving is how long the leaving of outputs may take before the terminal is told.
const tellLeaving = 2 * time.Second

// tellTransfer is how long a transfer takes at least to be logged.
const tellTransfer = 5 * time.Second

// Bring brings what the plan reads, and prepares the locations of what it leaves.
func (m *Manager) Bring(ctx context.Context, p plan.Plan, in registry.Instance) (err error) {
	ctx, cancel := m.withinStaging(ctx)
	defer cancel()
	work, err := files.Below(m.cfg.WorkDir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, work.Close()) }()
	folder, err := m.instanceFolder(p)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, folder.Close()) }()
	for _, item := range p.Stage {
		var err error
		switch item.Kind {
		case plan.StageCode:
			err = m.bringCode(ctx, p, item, work, folder)
		case plan.StageOutput:
			err = m.makeOutput(ctx, p, item)
		}
		if err != nil {
			return Fault(fmt.Errorf("%s %s: %w", item.Name, item.From, err))
		}
	}
	if err := m.bringFiles(ctx, p, work, folder); err != nil {
		return Fault(err)
	}
	if p.PAI != nil {
		m.checkDataDir(p.PAI.DataDir)
	}
	err = m.bringInputs(ctx, p, work, folder)
	if err == nil {
		err = m.prepareOutputs(ctx, p, in, work, folder)
	}
	return Fault(err)
}

// instanceFolder opens the instance's folder, to do in it what the process may.
func (m *Manager) instanceFolder(p plan.Plan) (files.UserFolder, error) {
	folder, err := m.instanceRoot(p)
	if err != nil {
		return files.UserFolder{}, err
	}
	return files.As(m.cfg.Stores.Owner()).In(folder), nil
}

// instanceRoot opens the instance's folder for the agent's own files without a name.
func (m *Manager) instanceRoot(p plan.Plan) (*os.Root, error) {
	work, err := files.Below(m.cfg.WorkDir)
	if err != nil {
		return nil, err
	}
	folder, err := work.Make(p.Process.Folder)
	return folder, errors.Join(err, work.Close())
}
