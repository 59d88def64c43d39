package registry

import (
	"maps"
	"strings"
	"time"
)

// Finding is what a member saw of another, or of itself, before it started: something that a person should mend, which
// ends nothing. It stands in the record of who saw it until that is over.
type Finding struct {
	Kind  findingKind `json:"kind"`
	About Instance    `json:"about"`
	Inc   string      `json:"inc"` // of whom it is about
	Addr  string      `json:"addr"`
	Why   string      `json:"why"`
	Since time.Time   `json:"since"`
}

// findingKind is what was found.
type findingKind string

// The kinds.
const (
	NotReached findingKind = "unreachable" // its agent does not answer at the address that its exports have
	NotApart   findingKind = "together"    // it shares a host with another of its component, where that is forbidden
)

// bootOf is as much of a boot's id as tells machines apart: it is a random uuid.
func bootOf(id string) string { return id[:min(len(id), 13)] }

// Saved is how an instance has answered the last Save that it heard of.
type Saved struct {
	Seq    int      `json:"seq"`
	To     []string `json:"to,omitempty"` // the folders of the save, of all instances
	Files  int      `json:"files"`
	Bytes  int64    `json:"bytes"`
	Failed string   `json:"failed,omitempty"` // why nothing was saved
	// LeftOut are files that changed whenever they were copied, as NAME/PATH; of many the first.
	LeftOut []string `json:"left_out,omitempty"`
}

// Phase is the phase of a member in its record. People see the phases of the agent's machine in its place
// (cmd/internal/view): `done` for what has ended, failed or left; only `lost` is shown as it stands here.
type Phase string

// The phases of a member record.
const (
	PhaseJoined Phase = "joined" // staging
	PhaseReady  Phase = "ready"  // acknowledged
	PhaseEnded  Phase = "ended"  // its process ended with 0
	PhaseFailed Phase = "failed" // its process ended otherwise, or never started
	PhaseLeft   Phase = "left"   // it gave its index back
	PhaseLost   Phase = "lost"   // the conductor gave it up
)

// Member is the key `members/<c>/<i>`: what an instance is and did. It outlives its agent. Its JSON is flat, in this
// order.
type Member struct {
	Version int    `json:"version"`
	Run     string `json:"run"`
	Inc     string `json:"inc"` // incarnation: uuid of one agent process
	Was     string `json:"was,omitempty"`
	Addr    string `json:"addr"` // host address in the exports
	// Address is host:port in the ClusterSpec; empty until the ports are bound, or without such an export.
	Address string `json:"address,omitempty"`
	API     string `json:"api,omitempty"`  // its socket on its host
	Peer    string `json:"peer,omitempty"` // host:port that answers other hosts; empty: none does
	Process
	Digest string `json:"digest"`
	Gen    int    `json:"gen"` // the generation that it has acknowledged
	// Up is the generation in which its process was last reported to serve, of a service the directive's;
	// 0: never, or no component waits for it.
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
}

// Process is what runs an instance: another agent proves from it that nothing of the instance runs any more.
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

// Origin is who started a member, and when.
type Origin struct {
	Launcher    string    `json:"launcher,omitempty"`
	ContainerID string    `json:"container_id,omitempty"` // the launcher's name of the container
	Since       time.Time `json:"since"`
}

// Notes are what a member reports beside its progress.
type Notes struct {
	Unenforced []string  `json:"unenforced,omitempty"`
	Saved      *Saved    `json:"saved,omitempty"`
	Found      []Finding `json:"found,omitempty"` // what it saw of others before it started, and still sees
	Here       *Here     `json:"here,omitempty"`  // its checkpoints, when it acknowledged Gen; nil: it resumes alone
}

// Folders are an instance's on its host, the log folder where scripts may ask for it.
type Folders struct {
	LogDir  string `json:"log_dir,omitempty"`
	WorkDir string `json:"work_dir,omitempty"`
}

// ProcessRef names one process so that no other can be taken for it.
type ProcessRef struct {
	Pid   int    `json:"pid"`
	Start uint64 `json:"start"`
}

// MemberExit is how a process ended, in a member record.
type MemberExit struct {
	Gen    int    `json:"gen"`
	Code   *int   `json:"code"` // the process's own, null if none
	Signal int    `json:"signal,omitempty"`
	Class  Class  `json:"class,omitempty"`
	Why    string `json:"why,omitempty"`
	Final  bool   `json:"final,omitempty"` // permanent, or the budget is spent
	// Passing: what was in the way may be gone another time; of class image alone, where a wrong name never passes.
	Passing bool `json:"passing,omitempty"`
	// At is the wall time of the end; the earliest of several failures is the first cause.
	At time.Time `json:"at,omitzero"`
}

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

// SameRow tells whether this member may run with the row: the same incarnation, or, in the instance
// scope, the same addresses and ports. Where its agent answers other hosts may differ in a member that goes by its
// name: it has moved, and who resolves the name again finds it.
func (m Member) SameRow(r Row, scope string) bool {
	if m.Inc == r.Inc {
		return true
	}
	return scope == ScopeInstance && m.ClusterAddr() == r.Addr && (m.Peer == r.Peer || m.byName()) &&
		maps.Equal(m.Ports, r.Ports)
}

// byName tells whether the member is written by a name that is not its host's.
func (m Member) byName() bool {
	return m.Address != "" && HostOf(m.Address) != strings.Trim(m.Addr, "[]")
}

// The restart scopes.
const (
	ScopeInstance = "instance" // in place, the others go on
	ScopeGang     = "gang"     // all restart together
	ScopeNever    = "never"    // an end is the end
)
