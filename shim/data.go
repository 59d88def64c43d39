package shim

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/registry/consul"
	"github.com/muster-agent/muster/shim/data"
	"github.com/muster-agent/muster/shim/data/transfer"
	"github.com/muster-agent/muster/shim/fault"
	"github.com/muster-agent/muster/shim/files"
	"github.com/muster-agent/muster/shim/journal"
	"github.com/muster-agent/muster/shim/machine"
	"github.com/muster-agent/muster/shim/plan"
	"github.com/muster-agent/muster/shim/store"
	"github.com/muster-agent/muster/shim/store/hdfs"
)

// dataManager brings the inputs of this agent's instance, feeds its process, and leaves its outputs.
type dataManager struct {
	cfg   dataConfig
	ctx   context.Context //nolint:containedctx // ends with close
	stop  context.CancelFunc
	tasks sync.WaitGroup
	saves interimSaves

	mu        sync.Mutex
	callOff   context.CancelCauseFunc // gives up what follows the end of the process
	leaving   bool                    // the process is over, its outputs are not where they belong yet
	moving    string                  // how far the files are that are brought or left now; "": there are none
	inputList string                  // what the process is told of its inputs; "": nothing
	feeding   *feeding                // what the process is fed; nil: nothing
	gathered  *gathered               // what the process says, where that is an output; nil: it has not begun
	owed      []owedOutput            // what room was made for and is not settled yet
	founded   time.Time               // of the app, for an agent that finds its run's verdict
	undone    error                   // what the job's success wants of this agent and it could not do
}

// dataConfig is what a dataManager is made of.
type dataConfig struct {
	Log             *slog.Logger
	App             appdef.App
	AppID, Run, Inc string
	Instance        *registry.Instance // that the agent was given; nil: any
	WorkDir         string
	Loop            *machine.Agent
	Notices         dataNotices
	Registry        dataRegistry
	Seat            func() dataSeat // nil: the agent has not joined
	Process         dataProcess
	Stores          dataStores
	// Counts are the numbers of instances that the gang goes by.
	Counts func() map[string]int
	// PlanAgain plans for an instance that will not start.
	PlanAgain func(ctx context.Context, in registry.Instance) (plan.Plan, error)
	// Dead tells that an agent of this host does not live any more.
	Dead func(registry.Member) bool
	// Kerberos is how the agent gets tickets for its process.
	Kerberos func() hdfs.Config
}

// dataNotices tells users what lasts, or takes long.
type dataNotices struct {
	Warn, Mended func(kind, text string)
	Event        func(kind, text string, at time.Time)
}

// dataRegistry is who else is at work.
type dataRegistry interface {
	Live(ctx context.Context, app string) (map[registry.Instance]bool, error)
	Status(ctx context.Context, app string) (consul.Status, error)
}

// dataSeat is the index that this agent holds.
type dataSeat interface {
	Instance() registry.Instance
	Founded() time.Time
	Saved(ctx context.Context, saved registry.Saved) error
}

// dataProcess is the process of the instance.
type dataProcess struct {
	Plan func() plan.Plan
	Over func() <-chan struct{} // closed when the attempt under way has ended; nil: there is none
	User func() *plan.UserFacts // nil: the agent's own
	// Fail ends the process for its data.
	Fail func(why string, err error)
}

// dataStores are where data is, as far as the process may reach.
type dataStores struct {
	Open    func(ctx context.Context, p plan.Plan, url string, write bool) (store.Store, string, error)
	Visible func(p plan.Plan, path string, write bool) error
}

// newDataManager makes a manager that lives until close: outputs are left after ctx is cancelled, too.
func newDataManager(ctx context.Context, cfg dataConfig) *dataManager {
	d := &dataManager{cfg: cfg}
	d.ctx, d.stop = context.WithCancel(context.WithoutCancel(ctx))
	return d
}

// close ends what is under way beside others.
func (d *dataManager) close() {
	d.stop()
	d.tasks.Wait()
}

// dataFault sorts what went wrong: what the definition can mend is its own fault.
func dataFault(err error) error {
	if err == nil {
		return nil
	}
	if slices.Contains([]registry.Class{registry.ClassTimeout, registry.ClassDefinition, registry.ClassNotPermitted}, fault.ClassOf(err)) {
		return err
	}
	if errors.Is(err, hdfs.ErrKerberos) && !errors.Is(err, store.ErrUnreachable) { // a KDC that is away is no refusal
		return fault.NotPermitted(err)
	}
	_, taken := errors.AsType[*data.TakenError](err)
	_, twice := errors.AsType[*transfer.NameError](err)
	if taken || twice || errors.Is(err, store.ErrScheme) {
		return fault.Definition(err)
	}
	return fault.Data(err)
}

// transfer is how this agent moves files.
func (d *dataManager) transfer() transfer.Transfer {
	return transfer.Transfer{
		Report: func(p transfer.Progress) {
			d.moves(p)
			if p.Ended && p.Took < tellTransfer { // who asked for it says what came
				return
			}
			d.cfg.Log.Info("transfer", "files", p.Files, "of", p.All, "bytes", p.Bytes, "bytes_per_second", p.Rate(), "took", p.Took.Round(time.Millisecond))
		},
		Again: func(file, why string) { d.cfg.Log.Warn("transfer is tried again", "file", file, "cause", why) },
	}
}

// moves has status say how far the files are that the instance waits for; those of a save are nobody's concern.
func (d *dataManager) moves(p transfer.Progress) {
	staging := d.cfg.Loop.State().Phase == machine.Staging
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case p.Ended:
		d.moving = ""
	case staging, d.leaving:
		d.moving = p.String()
	}
}

// way says what is brought or left now.
func (d *dataManager) way() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	const leaving = "its process is over, its outputs are being left"
	switch {
	case d.leaving && d.moving != "":
		return leaving + ": " + d.moving
	case d.leaving:
		return leaving
	case d.moving != "":
		return "inputs: " + d.moving
	}
	return ""
}

// leaves has status say that outputs are left, and the terminal where it takes longer than a moment.
func (d *dataManager) leaves() (over func()) {
	set := func(on bool) {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.leaving = on
	}
	set(true)
	text := d.way()
	done := make(chan struct{})
	d.tasks.Go(func() {
		late := time.NewTimer(tellLeaving)
		defer late.Stop()
		select {
		case at := <-late.C:
			d.cfg.Notices.Event(journal.EventLeaving, text, at)
		case <-done:
		}
	})
	return func() {
		close(done)
		set(false)
	}
}

// leavesOutputs tells that outputs are left, or to be settled.
func (d *dataManager) leavesOutputs() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.leaving || len(d.owed) > 0
}

// tellLeaving is how long the leaving of outputs takes at least of which the terminal is told.
const tellLeaving = 2 * time.Second

// tellTransfer is how long a transfer takes at least of which a line is written.
const tellTransfer = 5 * time.Second

// bring brings what the plan reads, and makes room for what it leaves. The files and archives that the definition names come
// between, by named.
func (d *dataManager) bring(ctx context.Context, p plan.Plan, in registry.Instance, named func(context.Context) error) (err error) {
	ctx, cancel := d.withinStaging(ctx)
	defer cancel()
	work, err := files.As(nil).Below(d.cfg.WorkDir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, work.Close()) }()
	for _, item := range p.Stage {
		var err error
		switch item.Kind {
		case plan.StageCode, plan.StageCodeBeside:
			err = d.bringCode(ctx, p, item, work)
		case plan.StageOutput:
			err = d.makeOutput(ctx, p, item)
		}
		if err != nil {
			return dataFault(fmt.Errorf("%s %s: %w", item.Name, item.From, err))
		}
	}
	if err := named(ctx); err != nil {
		return dataFault(err)
	}
	if p.PAI != nil {
		d.checkDataDir(p.PAI.DataDir)
	}
	if p.Inputs == nil && p.Outputs == nil {
		return nil
	}
	folder, err := work.Make(p.Process.Folder)
	if err != nil {
		return err
	}
	err = d.bringInputs(ctx, p, work, folder)
	if err == nil {
		err = d.roomForOutputs(ctx, p, in, work, folder)
	}
	return dataFault(errors.Join(err, folder.Close()))
}
