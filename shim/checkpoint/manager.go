package checkpoint

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/registry/conductor"
	"github.com/muster-agent/muster/shim/checkpoint/format"
	"github.com/muster-agent/muster/shim/data/transfer"
	"github.com/muster-agent/muster/shim/files"
	"github.com/muster-agent/muster/shim/hostlock"
	"github.com/muster-agent/muster/shim/machine"
	"github.com/muster-agent/muster/shim/plan"
	"github.com/muster-agent/muster/shim/store"
)

// The kinds of warnings that users see while a process runs.
const (
	warnCheckpoints = "checkpoints"    // the store refuses them
	warnBeginning   = "from-beginning" // the gang does not resume from what is stored
	warnApart       = "apart"          // a restart would start from the beginning
	warnWithout     = "without"        // the instance lacks the step that its gang resumes from
)

// Manager keeps the checkpoints of this agent's instance: it watches the folder that the process saves to,
// uploads what is there, and prepares the folder for the step that a generation resumes from.
type Manager struct {
	cfg   Config
	ctx   context.Context //nolint:containedctx // ends with close
	stop  context.CancelFunc
	tasks sync.WaitGroup

	plan     plan.Plan // since prepare
	uploader *uploader // since prepare; nil: nothing is uploaded

	looking chan struct{} // holds a token during a look: one at a time, and a store may take its time
	looker  *format.Looker
	warned  map[string]bool // incomplete checkpoints that were logged

	mu      sync.Mutex
	writer  *hostlock.Lock // held by the one agent of this host that uploads from the shared folder
	failed  error          // why the next start cannot resume
	resumed int            // the generation that last resumed here; 0: none
	marked  int            // the generation that the folder is marked with

	began     time.Time // when Watch began with the process
	resumedAt time.Time // when this agent last prepared the folder; zero: never
}

// Config is what a Manager is made of.
type Config struct {
	Log             *slog.Logger
	AppID, Run, Inc string
	State           string // the app's state folder on this host; "": agents share no listings
	Loop            *machine.Agent
	Notices         Notices
	// Registry is where this member commits. It is asked for once the member has joined.
	Registry func() Registry
	// Facts is what the rules of the gang need to know of the definition.
	Facts func() conductor.Facts
	// Open finds the store of a URL that a plan names.
	Open func(ctx context.Context, p plan.Plan, url string, write bool) (store.Store, string, error)
	// Owner is who the process is to the host's files; nil: the agent's own user.
	Owner func() *plan.UserFacts
	// Overrides tells whether the process may write whatever a user of the host owns.
	Overrides func(p plan.Plan, uid int) bool
	// Folder opens a checkpoint folder of this host with the process's rights, where a plan may name it.
	Folder func(p plan.Plan, dir string) (files.UserFolder, error)
	// Transfer copies files.
	Transfer func() transfer.Transfer
	// Signal sends the process a signal by its name; os.ErrProcessDone: there is no process.
	Signal func(name string) error
}

// Notices warn users for as long as a fault lasts.
type Notices struct{ Warn, Mended func(kind, text string) }

// Registry is what a member reads and writes of the gang's checkpoints.
type Registry interface {
	Founded() time.Time
	Record() registry.Member
	Directive() registry.Directive
	// Checkpoint commits a step that lies where its process saved it.
	Checkpoint(ctx context.Context, one registry.CheckpointStep) error
	// Store commits steps that were uploaded in a generation.
	Store(ctx context.Context, gen int, stored ...registry.CheckpointStep) error
	// CommonStep is what the conductor found in the checkpoints of all members.
	CommonStep(ctx context.Context) (registry.CommonStep, error)
	// Own is what this member has committed.
	Own(ctx context.Context) (registry.Checkpoint, error)
	// Stored is what all members have committed: it reads the keys of all.
	Stored(ctx context.Context) (map[registry.Instance]registry.Checkpoint, error)
	// Trim forgets what is older than a step, but for the newest.
	Trim(ctx context.Context, least int64) error
	Forget(ctx context.Context, uri string) error
	// Condemn reports a copy that is torn.
	Condemn(ctx context.Context, bad registry.BadCopy) error
	// GiveUp forgets what is newer than a step.
	GiveUp(ctx context.Context, after int64) error
}

// New makes a manager that lives until Close: after ctx is cancelled the process may save once more.
func New(ctx context.Context, cfg Config) *Manager {
	m := &Manager{cfg: cfg, looking: make(chan struct{}, 1)}
	m.ctx, m.stop = context.WithCancel(context.WithoutCancel(ctx))
	return m
}

// Close ends the manager's background work, and lets the next agent of this host upload.
func (m *Manager) Close() {
	m.stop()
	m.tasks.Wait()
	m.mu.Lock()
	defer m.mu.Unlock()
	_ = m.writer.Release() // held by this process alone
}

// Do commits a step. Where checkpoints are uploaded, the uploader commits them once they are in the store.
func (m *Manager) Do(ctx context.Context, e machine.Effect, _ machine.State) (machine.Event, bool) {
	if e.Kind != machine.DoCommit || m.uploader != nil {
		return machine.Event{}, false
	}
	ctx, cancel := context.WithTimeout(ctx, commitPatience)
	defer cancel()
	shared := m.locate(ctx).shared
	step := registry.CheckpointStep{Step: e.Step, URI: m.plan.Checkpoint.Dir, Shared: shared}
	m.logWrite("commit the checkpoint", m.cfg.Registry().Checkpoint(ctx, step))
	return machine.Event{}, false
}

// logWrite logs that a write to the registry failed, unless it was no longer wanted.
func (m *Manager) logWrite(act string, err error) {
	if err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, registry.ErrOvertaken) {
		m.cfg.Log.Warn("registry write failed", "act", act, "err", err)
	}
}
