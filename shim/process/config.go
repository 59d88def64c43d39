package process

import (
	"context"
	"log/slog"
	"os"
	"time"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/files"
	"github.com/muster-agent/muster/shim/machine"
	"github.com/muster-agent/muster/shim/plan"
	"github.com/muster-agent/muster/shim/ports"
	"github.com/muster-agent/muster/shim/sandbox"
)

// Config is what a Process is made from.
type Config struct {
	Log      *slog.Logger
	Loop     *machine.Agent // takes the events, and says where the machine stands
	Instance registry.Instance
	Plan     plan.Plan // resolved
	Reach    Reach
	WorkDir  string     // of the run
	LogDir   string     // the instance's
	User     files.User // whom the process runs as
	Ports    *ports.Instance
	// Park starts a guard for the instance.
	Park func(context.Context) (*sandbox.Guard, error)
	// Started is called at each start.
	Started func()
	// Ended takes the event of an attempt that is over, and tells the machine when its last files are safe.
	Ended func(machine.Event)

	// Roster is the sealed roster that was read last, and its bytes.
	Roster      func() (registry.Roster, []byte)
	Fence       fence
	GPUs        devices
	Data        data
	Checkpoints checkpoints
}

// Reach is where the process finds its agent, and peers find the process.
type Reach struct {
	Host      string // that the instance's exports have
	Socket    string // of the agent's API
	Publisher string // URL of Slider's REST; "": the app has none
}

// fence ends the process of a member that is cut off from the registry.
type fence interface {
	// Arm has the guard end the process when this agent does not say in time that it may go on. It refuses while the
	// agent is cut off.
	Arm(feeder) error
	// Disarm follows the proof that nothing of an attempt is left.
	Disarm()
	// TimerFired notes that the guard's dead-man timer has ended the process.
	TimerFired()
	// EndedProcess tells that it has.
	EndedProcess() bool
}

// feeder is a guard whose dead-man timer is wound up: the process may go on until this moment of CLOCK_BOOTTIME; 0: the
// timer is off.
type feeder = interface {
	Feed(until time.Duration) error
}

// devices are the devices that the instance was granted.
type devices interface {
	// Fit refuses a start on devices that asked for a reset and are not fit.
	Fit(ctx context.Context, ours func(pid int) bool) error
	// Suspect tells that a device asked for a reset since it was looked at last.
	Suspect() bool
}

// data is what the process reads and leaves.
type data interface {
	// Inputs adds what the process is told of its inputs.
	Inputs(*plan.Start)
	// Pipes makes the pipes of one start.
	Pipes() (Pipes, error)
	// CallOff gives up the leaving of outputs, unless the job's success wants them.
	CallOff(machine.State)
}

// Pipes are the stdin and stdout of one start where data flows through them; nil files are logs, or nothing.
type Pipes interface {
	Stdin() *os.File
	Stdout() *os.File
	// Begin feeds the process and hears it until over is closed.
	Begin(over <-chan struct{})
	// Abandon gives the pipes up: nothing has started.
	Abandon()
}

// checkpoints is where a start resumes from.
type checkpoints interface {
	// NotReady is why the folder is not as the gang resumes from it; nil: it is.
	NotReady() error
	// Resume is the checkpoint to start from, nil for the newest: its path and step.
	Resume(ctx context.Context, step *int64) (path string, at int64, ok bool)
	// AsksToSave tells that the process can be asked to save itself.
	AsksToSave() bool
	// AskToSave asks it, and waits for the checkpoint for a part of the grace. False: the process has ended.
	AskToSave(grace time.Duration, over <-chan struct{}) bool
}
