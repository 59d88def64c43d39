package main

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/registry/conductor"
	"github.com/muster-agent/muster/shim/checkpoint"
	"github.com/muster-agent/muster/shim/checkpoint/format"
	"github.com/muster-agent/muster/shim/files"
	"github.com/muster-agent/muster/shim/hostlock"
	"github.com/muster-agent/muster/shim/machine"
	"github.com/muster-agent/muster/shim/plan"
	"github.com/muster-agent/muster/shim/stage"
)

// What a person is warned of while a process runs.
const (
	warnCheckpoints = "checkpoints" // the store does not take them
	warnAnew        = "anew"        // the gang does not go on from what is stored
	warnApart       = "apart"       // a restart would begin anew
	warnWithout     = "without"     // it starts without the step that its gang goes on from
)

// checkpointManager keeps the checkpoints of this agent's instance: it watches the folder that its process saves to, uploads
// what is there, and has the folder hold what a generation resumes from.
type checkpointManager struct {
	cfg   checkpointConfig
	ctx   context.Context //nolint:containedctx // ends with close
	stop  context.CancelFunc
	tasks sync.WaitGroup
	plan  plan.Plan // from prepare on

	looking sync.Mutex // one look at a time; a store may take its time
	looker  *format.Looker
	warned  map[string]bool // torn checkpoints that were logged

	uploader *uploader // from prepare on; nil: nothing is uploaded

	mu      sync.Mutex
	writer  *hostlock.Lock // held by the one agent of this host that uploads from the shared folder
	failed  error          // why the next start cannot resume
	resumed int            // the generation that last resumed here; 0: none
	marked  int            // the generation that the folder is marked with
}

// checkpointConfig is what a checkpointManager is made of.
type checkpointConfig struct {
	Log             *slog.Logger
	AppID, Run, Inc string
	Loop            *machine.Agent
	Notices         checkpointNotices
	// Registry is where this member commits; not before it has joined.
	Registry func() checkpointRegistry
	// Facts is what the gang's rules need to know of the definition.
	Facts func() conductor.Facts
	// Open finds the store of a URL that a plan names.
	Open func(ctx context.Context, p plan.Plan, url string, write bool) (stage.Store, string, error)
	// Owner is the process's user; nil: the agent's own.
	Owner func() *plan.UserFacts
	// Transfer copies files.
	Transfer func() stage.Transfer
	// Signal signals the process by the name of a signal; os.ErrProcessDone: there is none.
	Signal func(name string) error
}

// owner is the user that checkpoint files are given to; nil: they stay the agent's own.
func (m *checkpointManager) owner() *checkpoint.Owner {
	u := m.cfg.Owner()
	if u == nil || os.Geteuid() != 0 {
		return nil
	}
	return &checkpoint.Owner{UID: u.UID, GID: u.GID}
}

// checkpointNotices warns users of what lasts.
type checkpointNotices struct{ Warn, Mended func(kind, text string) }

// checkpointRegistry is what a member reads and writes of the gang's checkpoints.
type checkpointRegistry interface {
	Founded() time.Time
	Record() registry.Member
	Directive() registry.Directive
	// Checkpoint commits a step that lies where its process saved it.
	Checkpoint(ctx context.Context, one registry.CheckpointStep) error
	// Store commits steps that were uploaded in a generation.
	Store(ctx context.Context, gen int, stored ...registry.CheckpointStep) error
	// Stored is what all members have committed.
	Stored(ctx context.Context) (map[registry.Instance]registry.Checkpoint, error)
	Trim(ctx context.Context, least int64) error
	Forget(ctx context.Context, uri string) error
	Condemn(ctx context.Context, bad registry.BadCopy) error
	GiveUp(ctx context.Context, after int64) error
}

// newCheckpointManager makes a manager that lives until close: what a cancelled ctx asks to end may save itself once more.
func newCheckpointManager(ctx context.Context, cfg checkpointConfig) *checkpointManager {
	m := &checkpointManager{cfg: cfg}
	m.ctx, m.stop = context.WithCancel(context.WithoutCancel(ctx))
	return m
}

// close ends what the manager does beside others, and lets the next agent of this host upload.
func (m *checkpointManager) close() {
	m.stop()
	m.tasks.Wait()
	m.mu.Lock()
	defer m.mu.Unlock()
	_ = m.writer.Release() // held by this process alone
}

// Do commits a step. What is uploaded counts when it is in the store: the uploader commits it then.
func (m *checkpointManager) Do(ctx context.Context, e machine.Effect, _ machine.State) (machine.Event, bool) {
	if e.Kind != machine.DoCommit || m.uploader != nil {
		return machine.Event{}, false
	}
	ctx, cancel := context.WithTimeout(ctx, commitPatience)
	defer cancel()
	shared := m.placeOf(ctx).shared
	step := registry.CheckpointStep{Step: e.Step, URI: m.plan.Checkpoint.Dir, Shared: shared}
	m.logWrite("commit the checkpoint", m.cfg.Registry().Checkpoint(ctx, step))
	return machine.Event{}, false
}

// logWrite logs that the registry did not take something, unless it was no longer wanted.
func (m *checkpointManager) logWrite(act string, err error) {
	if err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, registry.ErrOvertaken) {
		m.cfg.Log.Warn("registry write", "act", act, "err", err)
	}
}

// ruleOf is how a plan's checkpoints are recognised.
func ruleOf(p plan.Plan) format.Rule {
	c := p.Checkpoint
	whole, _ := appdef.ParseWhole(c.Whole) // the definition was checked
	return format.Rule{Framework: p.Framework, Pattern: c.Pattern, Whole: format.Whole(whole), Marker: c.Marker}
}

// placement is where an instance's checkpoints are.
type placement struct {
	dir    string // the checkpoint folder, or its URL
	place  string // within dir: "." or the instance's own folder
	shared bool   // with other instances
}

// at is the path or URL of something in it.
func (l placement) at(name string) string {
	if onStore(l.dir) {
		return strings.TrimSuffix(l.dir, "/") + "/" + path.Join(l.place, name)
	}
	return filepath.Join(l.dir, l.place, name)
}

func onStore(dir string) bool { return strings.Contains(dir, "://") }

// placeOf finds where this instance's checkpoints are: in the checkpoint folder, which all share, unless it is in the
// instance's own; or where the instance has a folder in it by its name, or a worker by its number, there.
func (m *checkpointManager) placeOf(ctx context.Context) placement {
	l := placement{dir: m.plan.Checkpoint.Dir, place: ".", shared: true}
	if files.Within(m.plan.Checkpoint.Dir, m.plan.Process.Folder) {
		l.shared = false
		return l
	}
	top, done, err := m.checkpointFS(ctx, ".")
	if err != nil {
		return l
	}
	defer done()
	names := []string{m.plan.Who.Component + "-" + strconv.Itoa(m.plan.Who.Index)}
	if m.plan.Who.Role == string(appdef.RoleWorker) {
		names = append(names, strconv.Itoa(m.plan.Who.Index))
	}
	for _, name := range names {
		if info, err := fs.Stat(top, name); err == nil && info.IsDir() {
			l.place, l.shared = name, false
			return l
		}
	}
	return l
}

// checkpointFS is a folder of the checkpoint folder, as far as the process itself could follow links there.
func (m *checkpointManager) checkpointFS(ctx context.Context, place string) (_ fs.FS, done func(), err error) {
	none := func() {}
	switch dir := m.plan.Checkpoint.Dir; {
	case onStore(dir):
		store, top, err := m.cfg.Open(ctx, m.plan, dir, false)
		return format.OnStore(ctx, store, path.Join(top, place)), none, err
	case m.plan.Root.Kind == plan.RootHost:
		return files.HostTree(filepath.Join(dir, place)), none, nil
	default:
		root, err := openPlace(dir, place) // of the host a container has no more than that
		if err != nil {
			return nil, none, err
		}
		return files.Tree(root), func() { _ = root.Close() }, nil
	}
}

// openPlace opens a folder of the checkpoint folder; no link leads out of it.
func openPlace(dir, place string) (*os.Root, error) {
	top, err := files.As(nil).Below(dir)
	if err != nil || place == "." {
		return top.Root, err
	}
	root, err := top.OpenRoot(place)
	return root, errors.Join(err, top.Close())
}

// look gives the checkpoints that there are. Those that are torn are told of once, when tell says so.
func (m *checkpointManager) look(ctx context.Context, tell bool) (format.Found, placement, error) {
	m.looking.Lock()
	defer m.looking.Unlock()
	l := m.placeOf(ctx)
	if rule := ruleOf(m.plan); m.looker == nil || !m.looker.Rule.Equal(rule) {
		m.looker = &format.Looker{Rule: rule}
	}
	dir, done, err := m.checkpointFS(ctx, l.place)
	if errors.Is(err, fs.ErrNotExist) {
		return format.Found{}, l, nil
	}
	if err != nil {
		return format.Found{}, l, err
	}
	defer done()
	found, err := m.looker.Look(dir)
	if tell {
		m.tellTorn(l, found)
	}
	return found, l, err
}

// tellTorn says once of each save why it does not count: of those that would be newer than what is gone on from.
func (m *checkpointManager) tellTorn(l placement, found format.Found) {
	newest, ok := found.Newest()
	for _, t := range found.Torn {
		if ok && t.Step <= newest.Step || m.warned[t.Path] {
			continue
		}
		if m.warned == nil {
			m.warned = map[string]bool{}
		}
		m.warned[t.Path] = true
		m.cfg.Log.Warn("checkpoint is not whole, passed over", "path", l.at(t.Path), "step", t.Step, "why", t.Why)
	}
}

// newest looks for the checkpoint to go on from, and gives its path or URL. step is the one that every rank has; nil: the newest
// of all.
func (m *checkpointManager) newest(ctx context.Context, step *int64, tell bool) (c format.Checkpoint, at string, ok bool) {
	found, l, err := m.look(ctx, tell)
	if err != nil {
		m.cfg.Log.Warn("look for a checkpoint", "dir", m.plan.Checkpoint.Dir, "err", err)
	}
	if step != nil {
		c, ok = found.At(*step)
	} else {
		c, ok = found.Newest()
	}
	return c, l.at(c.Path), ok
}
