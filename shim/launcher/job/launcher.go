package job

import (
	"context"
	"io"
	"net/http"

	"github.com/muster-agent/muster/shim/render"
	"github.com/muster-agent/muster/shim/store"
)

// Client brings one job to its launcher, and asks how it stands.
type Client interface {
	// Start starts the job, and gives the launcher's id of it.
	Start(ctx context.Context) (id string, err error)
	// State tells how it stands.
	State(ctx context.Context) (State, error)
	// Stop ends it at the launcher: agents get the launcher's stop signal.
	Stop(ctx context.Context) error
	// Hints are the launcher's own commands that follow the job and end it.
	Hints() (follow, end string)
}

// Request is a job that was rendered for a launcher, and the way there.
type Request struct {
	Job     render.Job
	Options render.Options // that it was rendered with

	Address string    // of the launcher's API; empty: the launcher's usual one
	UnitDir string    // of this host, for units of systemd
	Hadoop  string    // folder of Hadoop's configuration
	Warn    io.Writer // takes what the launcher does not do as it was asked
	Stores  store.Set // for what the launcher keeps on HDFS
	// Negotiate shows a launcher's API a ticket of Kerberos: it adds to a request what is wanted. Nil: the ticket
	// cache's.
	Negotiate func(*http.Request) error
}

// Launcher is how jobs come to one launcher.
type Launcher struct {
	New func(Request) (Client, error)
	// Format is the form of a job file that the launcher's API takes; empty: each.
	Format string
	// OneHost: it starts agents on this host alone, which see what lies here.
	OneHost bool
	// InImage: muster is in the agents' image, and they see no folder of the hosts.
	InImage bool
	// FetchesPrograms: it brings agents their binary from every store, not from a web server alone.
	FetchesPrograms bool
	// NewRuns: it answers Elsewhere with a new run, which is called RUN-N.
	NewRuns bool
	// FirstRun is what the job's first run is called, in a format; nil: as the job is.
	FirstRun func(run, format string) string
}
