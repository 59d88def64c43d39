package registry

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Instance names one numbered copy of a component.
type Instance struct {
	Component string `json:"c"`
	Index     int    `json:"i"`
}

// String prints `worker-1`.
func (i Instance) String() string { return i.Component + "-" + strconv.Itoa(i.Index) }

// ParseInstance splits `COMPONENT-INDEX` at the last dash.
func ParseInstance(s string) (Instance, error) {
	at := strings.LastIndexByte(s, '-')
	if at <= 0 {
		return Instance{}, fmt.Errorf("instance %q: want COMPONENT-INDEX", s)
	}
	n, err := strconv.Atoi(s[at+1:])
	if err != nil || n < 0 || strconv.Itoa(n) != s[at+1:] {
		return Instance{}, fmt.Errorf("instance %q: want a number from 0 after the last dash", s)
	}
	return Instance{Component: s[:at], Index: n}, nil
}

// AppRecord is the key `app`: which definition this app id runs. Only a new run changes it.
type AppRecord struct {
	Version int            `json:"version"`
	Run     string         `json:"run"`
	Digest  string         `json:"digest"`
	Def     string         `json:"def,omitempty"`    // resolved App: gzip, base64
	DefID   string         `json:"def_id,omitempty"` // of a Def too long to stand here: its chunks are def/<id>/<n>
	Counts  map[string]int `json:"counts"`
	Created time.Time      `json:"created"`
	By      string         `json:"by"`
	Token   string         `json:"token,omitempty"` // what agents of the run show each other from host to host
	Times   AgreedTimes    `json:"times,omitzero"`
}

// AgreedTimes are those, in seconds, that all agents of a run must share: a conductor with a shorter grace than a
// member reckons with would replace it while its process lives.
type AgreedTimes struct {
	TTL      float64 `json:"ttl"`
	Lost     float64 `json:"lost"`
	LostMass float64 `json:"lost_mass"`
}

func (t AgreedTimes) String() string {
	return fmt.Sprintf("--session-ttl %gs --lost-grace %gs --lost-mass %gs", t.TTL, t.Lost, t.LostMass)
}

// Act is what a directive tells the gang.
type Act string

// The acts.
const (
	ActWait Act = "wait"
	ActRun  Act = "run"
	ActStop Act = "stop"
)

// Directive is the one key that everybody waits for; written only by the conductor.
type Directive struct {
	Version   int            `json:"version"`
	Run       string         `json:"run"`
	Gen       int            `json:"gen"`
	Act       Act            `json:"act"`
	Seq       int            `json:"seq"`
	By        string         `json:"by"` // incarnation of the writer
	Counts    map[string]int `json:"counts"`
	Target    map[string]int `json:"target,omitempty"` // flex up: what will be
	Roster    RosterRef      `json:"roster,omitzero"`  // sealed last: this generation's when act is run
	Seeds     []string       `json:"seeds,omitempty"`
	Resume    *int64         `json:"resume,omitempty"` // step that every rank has; NoStep: none, and Anew says why
	Anew      string         `json:"anew,omitempty"`   // who has stored which steps, where none is everybody's
	Budget    Budget         `json:"budget,omitzero"`  // gang scope
	Retries   Retries        `json:"retries,omitzero"`
	Keep      int            `json:"keep,omitempty"`     // generation whose processes may be carried
	Released  []string       `json:"released,omitempty"` // components released so far; empty: all
	Why       string         `json:"why,omitempty"`
	First     string         `json:"first,omitempty"`      // instance that failed first
	StopGrace float64        `json:"stop_grace,omitempty"` // seconds
	Verdict   *Verdict       `json:"verdict,omitempty"`
	Save      *Save          `json:"save,omitempty"` // the last one that was begun
	At        time.Time      `json:"at"`             // for display
}

// Save asks all who have outputs to save what there is of them, while their processes go on.
type Save struct {
	Seq   int      `json:"seq"`            // from 1, of the run
	Stamp string   `json:"stamp"`          // the wall time in UTC, as HBox writes it: the same for all
	Asks  []string `json:"asks,omitempty"` // IDs of the asks that it answers; none: its time had come
}

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

// Retries say how often the whole gang was formed anew in place of a verdict (muster.retry).
type Retries struct {
	Used  int     `json:"used,omitempty"`  // those that muster.retry counts
	Free  int     `json:"free,omitempty"`  // those that it does not: the app could not help it
	Gen   int     `json:"gen"`             // what the last one formed: results of older generations count no more
	Pause float64 `json:"pause,omitempty"` // seconds that this generation waits before it starts
}

// RosterRef names a sealed roster by its content.
type RosterRef struct {
	ID     string `json:"id"` // <gen>-<first 12 hex of the sha256>
	Chunks int    `json:"chunks"`
	Bytes  int    `json:"bytes"` // uncompressed
	SHA256 string `json:"sha256"`
}

// Phase is where a member stands in the registry's eyes.
type Phase string

// The phases of a member record.
const (
	PhaseJoined Phase = "joined"
	PhaseReady  Phase = "ready"
	PhaseEnded  Phase = "ended"  // exit 0
	PhaseFailed Phase = "failed" // gone, not with 0
	PhaseLeft   Phase = "left"   // by itself
	PhaseLost   Phase = "lost"   // said by the conductor
)

// Member is the key `members/<c>/<i>`: what an instance is and did. It outlives its agent.
type Member struct {
	Version int    `json:"version"`
	Run     string `json:"run"`
	Inc     string `json:"inc"` // incarnation: uuid of one agent process
	Was     string `json:"was,omitempty"`
	Addr    string `json:"addr"` // host address in the exports
	// Address is host:port in the ClusterSpec; empty until the ports are bound, or without such an export.
	Address string      `json:"address,omitempty"`
	API     string      `json:"api,omitempty"`  // its socket on its host
	Peer    string      `json:"peer,omitempty"` // host:port that answers other hosts; empty: none does
	Machine string      `json:"machine"`        // DMI uuid + machine-id (+ addr)
	Boot    string      `json:"boot"`
	PidNS   string      `json:"pidns"`
	Pid     int         `json:"pid"`
	Start   uint64      `json:"start"` // clock ticks after boot, /proc/<pid>/stat field 22
	Slot    string      `json:"slot,omitempty"`
	Cgroup  string      `json:"cgroup,omitempty"`
	Guard   *ProcessRef `json:"guard,omitempty"` // what must be gone on take-over
	Digest  string      `json:"digest"`
	Gen     int         `json:"gen"`
	// Up is the generation in which its process was last reported to serve, of a service the directive's;
	// 0: never, or nobody waits for it.
	Up       int               `json:"up,omitempty"`
	Phase    Phase             `json:"ph"`
	Host     string            `json:"host,omitempty"`    // name for people
	Ports    map[string]int    `json:"ports,omitempty"`   // by port name, for the replacement
	Exports  map[string]string `json:"exports,omitempty"` // `<group>.<name>` → value
	Attempt  int               `json:"attempt"`           // number of the running start, or of the next; from 1
	Budget   Budget            `json:"budget,omitzero"`
	Exit     *MemberExit       `json:"exit,omitempty"`
	Launcher string            `json:"launcher,omitempty"`
	// ContainerID is the launcher's word for the container.
	ContainerID string    `json:"container_id,omitempty"`
	Since       time.Time `json:"since"`
	Unenforced  []string  `json:"unenforced,omitempty"`
	Saved       *Saved    `json:"saved,omitempty"`
	Found       []Finding `json:"found,omitempty"` // what it saw of others before it started, and still sees
	Here        *Here     `json:"here,omitempty"`  // its checkpoints, when it acknowledged Gen; nil: it goes on by itself
	// LogDir and WorkDir are the instance's folders on its host, the former where scripts may ask for it.
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

// Budget counts restarts: Used since the last refill or within the window that At remembers.
type Budget struct {
	Used int         `json:"used"`
	At   []time.Time `json:"at,omitempty"`
	Step int64       `json:"step,omitempty"` // newest checkpoint step when it was last charged
	Anew bool        `json:"anew,omitempty"` // the gang began anew, and has gone on from no step since: none refills the account
}

// Row is one line of a roster.
type Row struct {
	Instance
	Rank    int               `json:"rank"`
	Role    string            `json:"role"`
	Inc     string            `json:"inc"`
	Addr    string            `json:"addr"` // host:port in the ClusterSpec; host alone without an export
	Ports   map[string]int    `json:"ports,omitempty"`
	Exports map[string]string `json:"exports,omitempty"`
	API     string            `json:"api,omitempty"`
	Peer    string            `json:"peer,omitempty"`
	Boot    string            `json:"boot,omitempty"` // as much of the boot's id as tells machines apart
	Done    bool              `json:"done,omitempty"` // has ended for good, nothing runs there (instance scope)
}

// Roster is the sealed membership of one generation, rows in rank order.
type Roster struct {
	Version int    `json:"version"`
	Run     string `json:"run"`
	Gen     int    `json:"gen"`
	Resume  *int64 `json:"resume,omitempty"`
	Rows    []Row  `json:"rows"`
}

// Outcome is how a run ended.
type Outcome string

// The outcomes.
const (
	Succeeded Outcome = "succeeded"
	Failed    Outcome = "failed"
	Stopped   Outcome = "stopped"
)

// Class says what kind of thing went wrong; it decides exit codes and what is retried.
type Class string

// The classes of a verdict, and those that only reports use.
const (
	ClassNone         Class = ""
	ClassApp          Class = "app-error"
	ClassOOM          Class = "out-of-memory"
	ClassGPU          Class = "gpu-fault"
	ClassHost         Class = "host-lost"
	ClassNetwork      Class = "network"
	ClassData         Class = "data"
	ClassImage        Class = "image"
	ClassPreempted    Class = "preempted"
	ClassStopped      Class = "stopped"
	ClassTimeout      Class = "timeout"
	ClassDefinition   Class = "definition"
	ClassNotPermitted Class = "not-permitted"
	ClassMuster       Class = "muster"

	ClassLauncher Class = "launcher" // TERM from outside
	ClassRegistry Class = "registry" // cut off
	ClassFlex     Class = "flex"
	ClassMismatch Class = "mismatch" // the roster's row is another's
)

// MarshalJSON prints no class as null.
func (c Class) MarshalJSON() ([]byte, error) {
	if c == ClassNone {
		return []byte("null"), nil
	}
	return json.Marshal(string(c))
}

// Verdict is the run's one outcome with its cause.
type Verdict struct {
	Version int         `json:"version"`
	Run     string      `json:"run"`
	Outcome Outcome     `json:"outcome"`
	Class   Class       `json:"class"` // null when succeeded
	Cause   string      `json:"cause"`
	First   string      `json:"first,omitempty"` // instance
	Exit    *MemberExit `json:"exit,omitempty"`  // of First
	Advice  string      `json:"advice,omitempty"`
	Retry   bool        `json:"retry"`
	Gen     int         `json:"generation"`
	By      string      `json:"by,omitempty"` // who asked, for stopped: stop, interrupt
	At      time.Time   `json:"at"`
}

// Checkpoint is the key `checkpoint/<c>/<i>`: the newest whole checkpoints that an instance stored.
type Checkpoint struct {
	Version int              `json:"version"`
	Gen     int              `json:"gen"`
	Inc     string           `json:"inc"`
	Steps   []CheckpointStep `json:"steps"` // in the order of their commits: the newest five, and what the gang could go on from
	// Own: it has stored something of its own folder at some time, whatever there is now.
	Own bool `json:"own,omitempty"`
	// Bad are copies, its own or others', that this instance found not to be as they were stored: nobody goes on from those.
	Bad []BadCopy `json:"bad,omitempty"`
}

// CheckpointStep is one whole checkpoint.
type CheckpointStep struct {
	Step   int64  `json:"step"`
	URI    string `json:"uri,omitempty"`
	SHA256 string `json:"sha256,omitempty"`
	// Shared: of a folder of all instances, one of which stores it for all.
	Shared bool `json:"shared,omitempty"`
}

// BadCopy names a copy by where it is and what was committed: another may be stored there later.
type BadCopy struct {
	URI    string `json:"uri"`
	SHA256 string `json:"sha256,omitempty"`
}

// MostBad is how many bad copies a key names, the last found.
const MostBad = 16

// The kinds of an ask, with their args. stop: By is `stop` or `interrupt`; grace (seconds, optional),
// who (a person, optional), save (seconds, optional: for so long at most, all save before they stop).
// flex: component → count. gone: instance, inc. save: none.
const (
	AskStop = "stop"
	AskFlex = "flex"
	AskGone = "gone"
	AskSave = "save"
)

// Ask is what a client asks of the gang: stop, flex, save, newrun, gone.
type Ask struct {
	Version int               `json:"version"`
	Kind    string            `json:"kind"`
	ID      string            `json:"id"`
	By      string            `json:"by"`
	Args    map[string]string `json:"args,omitempty"`
}
