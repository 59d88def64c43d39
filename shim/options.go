package shim

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/hadoop"
	"github.com/muster-agent/muster/shim/openapp"
	"github.com/muster-agent/muster/shim/policy"
	"github.com/muster-agent/muster/shim/ports"
	"github.com/muster-agent/muster/shim/status"
)

// Options are the settings of one agent. App and Registry.Address have no default, and Name.AppID only what the
// launcher says. The zero value of any other field is its default, but for Name.Index, whose zero is index 0.
type Options struct {
	App  string          // folder, archive, URL or catalog:NAME
	Open openapp.Choices // how it is opened and changed; Policy and Hadoop are set from the fields below
	Name Name

	Launcher string // "shell": the launcher's variables are not read; "": it is recognised by them
	Host     string // address that peers reach this host at; "": detected
	// API is the HOST:PORT for peers' requests; "": a port of Ports, unless this host has a loopback address.
	API        string
	Ports      ports.Ranges  // to take ports from; nil: ports.Default
	KillWindow time.Duration // between the launcher's TERM and its KILL; 0: the launcher's usual
	Env        []string      // NAME or NAME=VALUE for the process

	Engine        string // auto, container, cgroup or process; "": auto
	RequireLimits bool   // refuse to run if a wanted limit cannot be enforced
	Policy        policy.Policy

	Folders   Folders
	Registry  Registry
	DefaultFS string // URI of the filesystem that paths without a scheme are in; "": Hadoop's, else in the work folder
	Hadoop    hadoop.Login

	Build     string   // version of the program, for the member's record; "": not known
	ExitCodes exit.Map // translates the code that Run returns
	Output    Output
	// Signals are passed to the machine as a launcher's request to end; nil: none. A cancelled context of Run counts as
	// SIGTERM.
	Signals <-chan os.Signal
	// Lifeline ends with the program that started the agent: SIGTERM then. nil: there is none. Run closes it.
	Lifeline io.ReadCloser
}

// Name says which instance of which run the agent is.
type Name struct {
	AppID     string // of the gang; "": the launcher's
	Run       string // one life of the app; "": the launcher's, else 1
	NewRun    bool   // Run was chosen: it may follow a finished run
	Component string // "": the launcher's, else any free index is claimed
	Index     int    // below 0: the launcher's, else a free one is claimed
}

// Folders are where an agent works.
type Folders struct {
	Work  string     // "": the launcher's, else one of the user's
	Log   string     // "": the launcher's, else in the work folder
	State status.Dir // of this host; "": the usual one of the user
}

// Registry is the gang's registry and its times.
type Registry struct {
	Address registry.Address
	Times   registry.Times // 0: the default; of Barrier the definition's
}

// Output is where an agent logs.
type Output struct {
	To        io.Writer // nil: nowhere
	Stdout    io.Writer // gets what the process writes there, where its output is copied; nil: nobody does
	Stderr    io.Writer // the same
	Tee       *bool     // copy the process's output; nil: where the launcher keeps the agent's
	JSON      bool
	PAIReport bool // end a failure with OpenPAI's block of text
}

// orDefaults are the options with the defaults in place of what is not set. An error: the times do not fit together.
func (o Options) orDefaults() (Options, error) {
	o.Engine = cmp.Or(o.Engine, "auto")
	if o.Output.To == nil {
		o.Output.To = io.Discard
	}
	if o.Output.Stdout == nil {
		o.Output.Stdout = io.Discard
	}
	if o.Output.Stderr == nil {
		o.Output.Stderr = io.Discard
	}
	if o.Ports == nil {
		o.Ports = ports.Ranges{ports.Default}
	}
	if o.Folders.State == "" {
		o.Folders.State = status.Dir(status.StateDir(os.Geteuid(), os.Getenv("XDG_RUNTIME_DIR")))
	}
	barrier := o.Registry.Times.Barrier
	o.Registry.Times = o.Registry.Times.OrDefaults()
	err := errors.Join(o.Registry.Times.Check()...)
	o.Registry.Times.Barrier = barrier // 0 still means the definition's
	return o, exit.With(exit.Usage, err)
}

// logger writes the agent's own log.
func (o Output) logger(to io.Writer) *slog.Logger {
	if o.JSON {
		return slog.New(slog.NewJSONHandler(to, nil))
	}
	return slog.New(slog.NewTextHandler(to, nil))
}

// dropped is the line in place of n lines of the log that were dropped.
func (o Output) dropped(n int) []byte {
	var b bytes.Buffer
	o.logger(&b).Warn("log lines dropped, nobody took them", "count", n)
	return b.Bytes()
}
