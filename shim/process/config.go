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
	Log *slog.Logger
	// Secret is given the values of secrets, which no text may show. It may be nil.
	Secret func(values map[string]string)
	// Hide takes secret values out of a text. It may be nil.
	Hide func(text string) string
	// SecretFiles writes secrets as files, and says where the process finds them; "": it gets none. It may be nil.
	SecretFiles func(values map[string]string) (folder string, err error)
	Loop        *machine.Agent // takes the events and has the state
	Instance    registry.Instance
	Plan        plan.Plan // resolved
	Reach       Reach
	WorkDir     string     // of the run
	LogDir      string     // the instance's
	User        files.User // whom the process runs as
	Ports       *ports.Instance
	// Secrets reads the values that the plan names by reference.
	Secrets func(refs map[string]string) (map[string]string, error)
	// Park starts a guard for the instance.
	Park func(context.Context) (*sandbox.Guard, error)
	// Warn has status show a warning of a kind, and Mended takes it back.
	Warn, Mended func(kind, text string)
	// Started is called at each start.
	Started func()
	// Ended takes the event of an attempt that has ended, and tells the machine when its last files are stored.
	Ended func(machine.Event)

	// Roster is the sealed roster that was read last, and its text.
	Roster      func() (registry.Roster, []byte)
	Login       login                             // where the plan has an ssh server
	SideKey     func(side string) (string, error) // that the page of a side process asks for
	Fence       fence
	GPUs        devices
	Data        data
	Checkpoints checkpoints
}

// Reach is where the process finds its agent, and where peers find the process.
type Reach struct {
	Host      string // that the instance's exports have
	Socket    string // of the agent's API
	Publisher string // URL of Slider's REST; "": the app has none
}

// login is the instance's ssh server, which holds a port of the plan.
type login interface {
	// Hosts adds to a start what a client of ssh needs to log in to the gang's other instances.
	Hosts(*plan.Start, registry.Roster)
	// Moved follows a change of the plan's ports.
	Moved(ctx context.Context)
}

// fence ends the process of a member that is cut off from the registry.
type fence interface {
	// Arm makes the guard end the process unless this agent keeps renewing the time. It refuses while the agent is cut
	// off.
	Arm(feeder) error
	// Disarm follows the proof that no process of an attempt is left.
	Disarm()
	// TimerFired notes that the guard's dead-man timer has ended the process.
	TimerFired()
	// EndedProcess tells that the timer has ended the process.
	EndedProcess() bool
}

// feeder is a guard with a dead-man timer: the process may run until this moment of CLOCK_BOOTTIME; 0: the timer is
// off.
type feeder = interface {
	Feed(until time.Duration) error
}

// devices are the GPUs that the instance was granted.
type devices interface {
	// Fit refuses a start on devices that asked for a reset and are still faulty.
	Fit(ctx context.Context, ours func(pid int) bool) error
	// Suspect tells that a device has asked for a reset since the last look at it.
	Suspect() bool
}

// data is the input and output of the process.
type data interface {
	// Inputs adds to a start how the process finds its inputs.
	Inputs(*plan.Start)
	// Pipes makes the pipes of one start.
	Pipes() (Pipes, error)
	// CallOff cancels the leaving of outputs, unless the job's success needs them.
	CallOff(machine.State)
}

// Pipes are the stdin and stdout of one start where data flows through them; a nil file is a log, or no input.
type Pipes interface {
	Stdin() *os.File
	Stdout() *os.File
	// Begin feeds the process and reads its stdout until over is closed.
	Begin(over <-chan struct{})
	// Abandon closes the pipes: nothing has started.
	Abandon()
}

// checkpoints is where a start resumes from.
type checkpoints interface {
	// NotReady is why the checkpoint folder differs from what the gang resumes from; nil: it does not.
	NotReady() error
	// Resume is the checkpoint to start from, nil for the newest: its path and step.
	Resume(ctx context.Context, step *int64) (path string, at int64, ok bool)
	// AsksToSave tells that the process can be asked to save a checkpoint.
	AsksToSave() bool
	// AskToSave asks for a checkpoint and waits for it during a part of the grace. False: the process has ended.
	AskToSave(grace time.Duration, over <-chan struct{}) bool
}
