package status

import (
	"time"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/samples"
)

// Instance is one row of every listing. In JSON its groups are one flat object.
type Instance struct {
	Version int `json:"version"`
	Identity
	Phase string    `json:"phase"`
	Since time.Time `json:"since"`
	Location
	Starts
	Advance
	End
	Unenforced []string   `json:"unenforced"`
	Cause      string     `json:"cause,omitempty"`  // what it waits for, or why it is in its phase
	Outage     *Outage    `json:"outage,omitempty"` // the registry has not answered for long
	Waits      []Wait     `json:"waits,omitempty"`  // of the conductor
	Sides      []Side     `json:"sides,omitempty"`
	LastEnd    string     `json:"last_end,omitempty"` // how the attempt before this one ended
	Conducts   bool       `json:"conducts,omitempty"`
	AwaySince  *time.Time `json:"registry_unreachable_since,omitempty"`
	Warnings   []Warning  `json:"warnings,omitempty"`
}

// Identity says which instance a row is of.
type Identity struct {
	Instance  string `json:"instance"`
	Component string `json:"component"`
	Index     int    `json:"index"`
	Rank      int    `json:"rank"`
	Role      string `json:"role"`
}

// IdentityOf is an instance's, without its rank and role.
func IdentityOf(in registry.Instance) Identity {
	return Identity{Instance: in.String(), Component: in.Component, Index: in.Index}
}

// Location says where an instance is and what it publishes.
type Location struct {
	Host    string            `json:"host"`
	Pid     int               `json:"pid,omitempty"` // of the agent
	Ports   map[string]int    `json:"ports"`
	Exports map[string]string `json:"exports"`
	// DNSName is where Consul's DNS has it; empty: nowhere, or not now.
	DNSName string `json:"dns_name,omitempty"`
	GPUs    []GPU  `json:"gpus,omitempty"` // that it holds, or held at its end
}

// GPU is a device of the instance's host, or a MIG instance of one.
type GPU struct {
	ID    string `json:"id"`              // UUID; where the driver names none, the index
	Model string `json:"model,omitempty"` // absent: not known
}

// Starts counts the lives of an instance.
type Starts struct {
	Generation int `json:"generation"`
	Attempt    int `json:"attempt"`
	Restarts   int `json:"restarts"`
	// Started is when the process of the attempt was started; absent: it was not.
	Started *time.Time `json:"started,omitempty"`
	// Failures are the ends of its process that restarts followed, or the last one: in a gang that restarts together an
	// instance has more restarts than failures. Its present agent has counted them.
	Failures int `json:"failures,omitempty"`
}

// Advance is how far an instance has come.
type Advance struct {
	Progress       *float64 `json:"progress"`        // 0…1; null: not reported
	CheckpointStep *int64   `json:"checkpoint_step"` // newest complete one; null: none
	// ResumedStep is the step of the checkpoint that the current attempt resumed from; null: it began at the start.
	ResumedStep *int64 `json:"resumed_step,omitempty"`
	// NoOutputSince is when the program last showed a sign of life, once that is longer ago than muster.silence.
	NoOutputSince *time.Time `json:"no_output_since,omitempty"`
}

// Hold is a container that is kept after its process has failed.
type Hold struct {
	Until time.Time `json:"until"`
}

// End is how the process of an instance ended; null while it is alive.
type End struct {
	Hold     *Hold `json:"hold,omitempty"` // absent: its container is not kept
	Exit     *int  `json:"exit"`           // as a shell sees it
	ExitInfo *Exit `json:"exit_info"`
	PAI      *PAI  `json:"pai,omitempty"` // in PAI's words, of an app that PAI's tasks are told of
	// Use is what it used while it lived; absent: not known, or it lives
	Use *samples.Use `json:"use,omitempty"`
}

// Warning is something that the user should mend while the process runs.
type Warning struct {
	Kind  string    `json:"kind"`
	Text  string    `json:"text"` // in one line, with what to do
	Since time.Time `json:"since"`
}

// Side is a process that runs beside the instance's own.
type Side struct {
	Name     string `json:"name"`
	Pid      int    `json:"pid,omitempty"` // in its pid namespace; 0: it does not run
	Restarts int    `json:"restarts"`
}

// Exit is how a process ended.
type Exit struct {
	Code    *int      `json:"code"`
	Signal  int       `json:"signal"`
	OOM     bool      `json:"oom"`
	Peak    int64     `json:"peak"`  // bytes
	Limit   int64     `json:"limit"` // bytes
	At      time.Time `json:"at"`
	Message string    `json:"message,omitempty"`
	// LastOutput is the end of what a failed process wrote to stderr, or else to stdout.
	LastOutput string `json:"last_output,omitempty"`
}

// Outage is what an agent decides by while the registry does not answer.
type Outage struct {
	Since   time.Time `json:"since"`   // the last answer
	CutOff  int       `json:"cut_off"` // members that get no answer either, this one included
	Members int       `json:"members"` // so many were asked, this one included; 0: none yet
	Fenced  bool      `json:"fenced"`  // the process was stopped because of it
	Until   time.Time `json:"until"`   // the process is stopped then, even if no member gets an answer
}

// Wait is a member whose session expired: the conductor waits for it.
type Wait struct {
	Instance string    `json:"instance"`
	Since    time.Time `json:"since"` // the wait began, perhaps again
	Until    time.Time `json:"until"` // the member is lost then, and may be replaced
	Mass     bool      `json:"mass"`  // the sessions of most of the gang expired, so the wait is --lost-mass
}

// PAI is the row of OpenPAI's exit table for an end.
type PAI struct {
	Code     int    `json:"code"`
	Phrase   string `json:"phrase"`
	Type     string `json:"type"`     // USER_FAILURE, PLATFORM_FAILURE, …
	Reaction string `json:"reaction"` // what PAI would do: ALWAYS_RETRY, RETRY_TO_MAX, …
}

// State is the answer of GET /v1/state.
type State struct {
	Instance
	PlanDigest string         `json:"plan_digest"`
	Limits     map[string]any `json:"limits"`
	App        string         `json:"app"`
	Run        string         `json:"run"`
	Inc        string         `json:"inc"`
	LogDir     string         `json:"log_dir"`
}

// ExitFile is exit.json in an instance's log folder.
type ExitFile struct {
	Version    int               `json:"version"`
	App        string            `json:"app"`
	Instance   string            `json:"instance"`
	Attempt    int               `json:"attempt"`
	Generation int               `json:"generation"`
	Exit       *Exit             `json:"exit"`
	Verdict    *registry.Verdict `json:"verdict"`
	AgentCode  int               `json:"agent_code"`
	MappedCode *int              `json:"mapped_code,omitempty"` // after --exit-code-map
	// LogsFrom is the offset in bytes of the last attempt's output in each log file; empty: this agent started none.
	LogsFrom map[string]int64 `json:"logs_from,omitempty"`
	PAI      *PAI             `json:"pai,omitempty"`
}
