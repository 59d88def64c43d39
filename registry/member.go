package registry

import (
	"maps"
	"strings"
	"time"
)

// Finding is a problem that a member saw before its start, in another member or in itself: a person should mend it, but
// it ends nothing. It stays in the member's record until it is over.
type Finding struct {
	Kind  findingKind `json:"kind"`
	About Instance    `json:"about"`
	Inc   string      `json:"inc"` // of the member that it is about
	Addr  string      `json:"addr"`
	Why   string      `json:"why"`
	Since time.Time   `json:"since"`
	Later later       `json:"-"`
}

// findingKind is the kind of a problem.
type findingKind string

// The kinds.
const (
	NotReached findingKind = "unreachable" // its agent does not answer at the address of its exports
	// NotApart: it shares a host with another instance of its component although that is forbidden.
	NotApart findingKind = "together"
)

// bootOf is the part of a boot id, a random uuid, that is enough to distinguish machines.
func bootOf(id string) string { return id[:min(len(id), 13)] }

// Saved is the instance's answer to the last Save that it saw.
type Saved struct {
	Seq    int      `json:"seq"`
	To     []string `json:"to,omitempty"` // the folders of the save, of all instances
	Files  int      `json:"files"`
	Bytes  int64    `json:"bytes"`
	Failed string   `json:"failed,omitempty"` // why nothing was saved
	// LeftOut are files that changed during each copy, as NAME/PATH; of many only the first.
	LeftOut []string `json:"left_out,omitempty"`
	Later   later    `json:"-"`
}

// Phase is the phase of a member in its record. Users see the phases of the agent's machine instead
// (cmd/internal/view): `done` for ended, failed and left. Only `lost` is shown unchanged.
type Phase string

// The phases of a member record.
const (
	PhaseJoined Phase = "joined" // staging
	PhaseReady  Phase = "ready"  // acknowledged
	PhaseEnded  Phase = "ended"  // its process ended with 0
	PhaseFailed Phase = "failed" // its process failed, or never started
	PhaseLeft   Phase = "left"   // it gave its index back
	PhaseLost   Phase = "lost"   // the conductor declared it lost
)

// Member is the key `members/<c>/<i>`: what an instance is and did. It outlives its agent. Its JSON is flat, in this
// order.
type Member struct {
	Run  string `json:"run"`
	Inc  string `json:"inc"` // incarnation: uuid of one agent process
	Was  string `json:"was,omitempty"`
	Addr string `json:"addr"` // host address in the exports
	// Address is host:port in the ClusterSpec; empty until the ports are bound, or without such an export.
	Address string `json:"address,omitempty"`
	API     string `json:"api,omitempty"`  // its socket on its host
	Peer    string `json:"peer,omitempty"` // for requests of agents on other hosts (JoinPeer); empty: none
	Process
	Digest string `json:"digest"`
	Gen    int    `json:"gen"` // the generation that it has acknowledged
	// Up is the generation in which its process was last reported to serve (for a service: the directive's). 0: never,
	// or no component waits for it.
	Up      int               `json:"up,omitempty"`
	Phase   Phase             `json:"ph"`
	Host    string            `json:"host,omitempty"`    // name for people
	Ports   map[string]int    `json:"ports,omitempty"`   // by port name, for the replacement
	Exports map[string]string `json:"exports,omitempty"` // `<group>.<name>` → value
	Attempt int               `json:"attempt"`           // number of the running start, or of the next; from 1
	Budget  Budget            `json:"budget,omitzero"`
	Exit    *MemberExit       `json:"exit,omitempty"`
	Origin
	Notes
	Folders
	Later later `json:"-"`
}

// Process identifies the processes of an instance: with it another agent proves that none of them still runs.
type Process struct {
	Machine string      `json:"machine"` // DMI uuid + machine-id (+ addr)
	Boot    string      `json:"boot"`
	PidNS   string      `json:"pidns"`
	Pid     int         `json:"pid"`
	Start   uint64      `json:"start"` // clock ticks after boot, /proc/<pid>/stat field 22
	Slot    string      `json:"slot,omitempty"`
	Cgroup  string      `json:"cgroup,omitempty"`
	Guard   *ProcessRef `json:"guard,omitempty"` // must be gone before another agent takes over
}

// Origin is the launcher of a member, its build, and the time of its start.
type Origin struct {
	Launcher    string    `json:"launcher,omitempty"`
	ContainerID string    `json:"container_id,omitempty"` // the launcher's name of the container
	Since       time.Time `json:"since"`
	Build       string    `json:"build,omitempty"` // version of its muster
	Proto       int       `json:"proto,omitempty"` // the newest protocol version that it speaks; 0: the first
}

// Notes are what a member reports beside its progress.
type Notes struct {
	Unenforced []string  `json:"unenforced,omitempty"`
	Saved      *Saved    `json:"saved,omitempty"`
	Found      []Finding `json:"found,omitempty"` // problems of others that it saw before its start, and still sees
	Here       *Here     `json:"here,omitempty"`  // its checkpoints, when it acknowledged Gen; nil: it resumes alone
}

// Folders are those of an instance on its host; the log folder only if scripts may ask for it.
type Folders struct {
	LogDir  string `json:"log_dir,omitempty"`
	WorkDir string `json:"work_dir,omitempty"`
}

// ProcessRef identifies one process without doubt, even if its pid is used again.
type ProcessRef struct {
	Pid   int    `json:"pid"`
	Start uint64 `json:"start"`
	Later later  `json:"-"`
}

// MemberExit is how a process ended, in a member record.
type MemberExit struct {
	Gen    int    `json:"gen"`
	Code   *int   `json:"code"` // the process's own, null if none
	Signal int    `json:"signal,omitempty"`
	Class  Class  `json:"class,omitempty"`
	Why    string `json:"why,omitempty"`
	Final  bool   `json:"final,omitempty"` // the failure is permanent, or the budget is spent
	// Passing: the cause may be temporary. Only class image sets it: a wrong name is never temporary.
	Passing bool `json:"passing,omitempty"`
	// At is the wall time of the end. Among failures on one machine the earliest is the first cause.
	At time.Time `json:"at,omitzero"`
	// LastOutput is the end of what a failed process wrote to stderr, or else to stdout: lines, at most MostOutput
	// bytes. Secrets are masked.
	LastOutput string `json:"last_output,omitempty"`
	Later      later  `json:"-"`
}

// MostOutput is how much of a failed process's output its member record holds, in bytes: each member of a gang may have
// failed, and its roster's readers read them all.
const MostOutput = 1000

// ClusterAddr is the member's address in the ClusterSpec: host:port, or its host without such an export.
func (m Member) ClusterAddr() string {
	if m.Address != "" {
		return m.Address
	}
	return m.Addr
}

// Row is the member's row in a roster.
func (m Member) Row(in Instance, rank int, role string) Row {
	return Row{
		Instance: in, Rank: rank, Role: role, Inc: m.Inc, Addr: m.ClusterAddr(),
		Ports: m.Ports, Exports: m.Exports, API: m.API, Peer: m.Peer, Boot: bootOf(m.Boot),
	}
}

// SameRow tells whether this member may run with the row: it has the same incarnation, or, in the instance scope, the
// same addresses and ports. A member addressed by name may have moved to another host: peers find it when they resolve
// the name again.
func (m Member) SameRow(r Row, scope string) bool {
	if m.Inc == r.Inc {
		return true
	}
	return scope == ScopeInstance && m.ClusterAddr() == r.Addr && (m.Peer == r.Peer || m.byName()) &&
		maps.Equal(m.Ports, r.Ports)
}

// byName tells whether the member's address is a name that is not its host's.
func (m Member) byName() bool {
	return m.Address != "" && HostOf(m.Address) != strings.Trim(m.Addr, "[]")
}

// The restart scopes.
const (
	ScopeInstance = "instance" // it restarts in place, the others continue
	ScopeGang     = "gang"     // all restart together
	ScopeNever    = "never"    // nothing restarts
)
