package plan

import (
	"github.com/muster-agent/muster/appdef"
)

// Plan is what one agent does. Its layout is that of the JSON of `muster plan`: the embedded groups are flat there.
type Plan struct {
	Version    int         `json:"version"`
	App        AppPart     `json:"app"`
	Who        Who         `json:"who"`
	Allocation Allocation  `json:"allocation"`
	Engine     Engine      `json:"engine"`
	Root       Root        `json:"root"`
	Stage      []StageItem `json:"stage"`
	Process    Process     `json:"process"`
	Script     *Script     `json:"script,omitempty"` // nil: one command runs the instance, not the package's scripts
	Training
	Sides []Side `json:"sides,omitempty"`
	Data
	Limits Limits `json:"limits"`
	Network
	Lifecycle
	Checkpoint Checkpoint `json:"checkpoint"`
	Times
	Origins  map[string]string `json:"origins"`
	Warnings []appdef.Problem  `json:"warnings"`
	Start    *Start            `json:"start,omitempty"`    // with a roster only
	Launcher *Launcher         `json:"launcher,omitempty"` // only `muster plan` fills it in
}

// Training is the framework, and what its programs get besides the roster.
type Training struct {
	Framework string `json:"framework"`
	// Mode is the framework's mode, if it has more than one: in-graph.
	Mode string `json:"mode,omitempty"`
	// Processes is the number of processes in each container that trains; 0: one.
	Processes int   `json:"processes,omitempty"`
	MPI       *MPI  `json:"mpi,omitempty"`  // nil: mpirun starts nothing here
	PAI       *PAI  `json:"pai,omitempty"`  // nil: no variables of PAI
	HBox      *HBox `json:"hbox,omitempty"` // nil: no variables of HBox
}

// Data is what the instance reads from stores and uploads to them.
type Data struct {
	Hadoop    *Hadoop  `json:"hadoop,omitempty"`     // nil: this host has no configuration of Hadoop
	DefaultFS string   `json:"default_fs,omitempty"` // of a job with data only
	Inputs    *Inputs  `json:"inputs,omitempty"`
	Outputs   *Outputs `json:"outputs,omitempty"`
}

// Network is how others reach the instance.
type Network struct {
	Ports   []Port     `json:"ports"`
	Peers   []peerPort `json:"peer_ports,omitempty"` // ports of other components that the configuration names
	Exports []Export   `json:"exports"`
	// AppExports and PublishedConfigs (names of dictionaries) are published once for the whole app: see PublishedBy.
	AppExports       []Export `json:"app_exports,omitempty"`
	PublishedConfigs []string `json:"published_configs,omitempty"`

	Login *loginServer `json:"login,omitempty"` // nil: no ssh server

	Discovery *Discovery `json:"discovery,omitempty"` // nil: nothing of it is in Consul, or the app has no name yet
}

// Lifecycle is when the process starts, restarts and ends.
type Lifecycle struct {
	Barrier  barrier  `json:"barrier"`
	Restart  Restart  `json:"restart"`
	Complete complete `json:"complete"`
	Stop     stop     `json:"stop"`
}

// Times are in seconds; 0: none.
type Times struct {
	StageTimeout float64 `json:"stage_timeout"`
	Timeout      float64 `json:"timeout"`
	Duration     float64 `json:"duration"`
	Hold         float64 `json:"hold"`
	HoldEnds     bool    `json:"hold_ends,omitempty"` // the gang does not wait for the end of a hold
	Silence      float64 `json:"silence"`
}

// AppPart names the definition.
type AppPart struct {
	ID      string `json:"id"` // "-" when unknown
	Name    string `json:"name"`
	Digest  string `json:"digest"`
	Dialect string `json:"dialect"`
}

// Who is the planned instance. WorldSize counts all instances but services.
type Who struct {
	Component string `json:"component"`
	Index     int    `json:"index"`
	Rank      int    `json:"rank"`
	Role      string `json:"role"`
	WorldSize int    `json:"world_size"`
}

// Allocation is what the launcher granted.
type Allocation struct {
	Launcher    string         `json:"launcher"`
	Host        string         `json:"host"`
	ContainerID string         `json:"container_id,omitempty"`
	Ports       map[string]int `json:"ports"`
	Devices     []string       `json:"devices"`
	Envelope    Envelope       `json:"envelope"`
	KillWindow  float64        `json:"kill_window"` // seconds; 0: none
	User        string         `json:"-"`
	// Vars are names that only a client knows (`--set NAME=v`, the environment, Hadoop's configuration): ZK_HOST,
	// NN_URI, JAVA_HOME and so on.
	Vars map[string]string `json:"-"`
}

// Envelope is the launcher's own limit around the agent; 0: unknown.
type Envelope struct {
	MemoryMB int `json:"memory_mb"`
	VCores   int `json:"vcores"`
}

// Engine says how the process is confined, and what that cannot enforce.
type Engine struct {
	Name       string       `json:"name"`
	Why        string       `json:"why"`
	Unenforced []unenforced `json:"unenforced"`
	// IDs are whose the process's user and group ids are on the host: IDsSubordinate, or "" for the agent's own.
	IDs string `json:"ids,omitempty"`
	// Filter is the filter of system calls that holds on the host: default, with its changes, none, or a path.
	Filter string `json:"filter,omitempty"`
}

// unenforced is a requested limit that nothing enforces.
type unenforced struct {
	Limit string `json:"limit"`
	Why   string `json:"why"`
}

// Root is what the process finds at /.
type Root struct {
	Kind   string `json:"kind"` // host, read-only, overlay, image
	Image  string `json:"image,omitempty"`
	Digest string `json:"digest,omitempty"` // of the image's manifest, once it is pulled
	Auth   string `json:"-"`                // where its credentials are: file:PATH, env:NAME
}

// Process is the command as far as it is known before the roster. Argv may still contain placeholders of the start:
// `${ps_HOST}`, `{{checkpoint}}`.
type Process struct {
	Argv       []string          `json:"argv"`
	Cwd        string            `json:"cwd"`
	User       string            `json:"user,omitempty"` // name or uid, with :group or without; empty: the agent's
	Env        map[string]string `json:"env"`
	Secrets    []string          `json:"secrets"`
	SecretRefs map[string]string `json:"-"`
	JobSecrets map[string]string `json:"-"` // values, by the names that follow appdef.JobSecret
	// SecretForm is how the process gets its secrets: appdef.SecretsFile or SecretsEnv alone; empty: both.
	SecretForm string `json:"secret_form,omitempty"`
	Stdin      string `json:"stdin,omitempty"`
	ResumeArgs string `json:"resume_args,omitempty"`
	// Folder is the instance's own folder; it is Cwd unless an image has another.
	Folder string `json:"-"`
	// Shell: the last word of Argv is a text for a shell.
	Shell bool `json:"-"`
	// Verbatim is how many of the first words of Argv come from an image: they have no placeholders.
	Verbatim int `json:"-"`
	// Literal is the one word of Argv without placeholders: a command of a dialect that has none.
	Literal string `json:"-"`
	// Inherited is the environment below Env. It belongs to the host and is not printed.
	Inherited map[string]string `json:"-"`
	// Components are those of the app, for `${C_HOST}`.
	Components []string `json:"-"`
}

// Limits are the cgroup values.
type Limits struct {
	MemoryMB    int    `json:"memory_mb"`
	VCores      int    `json:"vcores"`
	CPUHard     bool   `json:"cpu_hard"`
	SwapMB      int    `json:"swap_mb"`
	Pids        int    `json:"pids"`
	ShmMB       int    `json:"shm_mb"`
	StorageGB   int    `json:"storage_gb,omitempty"` // free in the work folder at the start
	GPUs        int    `json:"gpus"`
	GPUType     string `json:"gpu_type"`
	GPUMemoryMB int    `json:"gpu_memory_mb"`
	// HighMB is the memory from which the kernel slows the process down. Autoscale is the share of MemoryMB that each
	// restart after out of memory adds.
	HighMB      int               `json:"high_mb,omitempty"`
	Autoscale   float64           `json:"autoscale,omitempty"`
	AutoscaleAt string            `json:"autoscale_at,omitempty"` // as in appdef.Limits
	RDMA        bool              `json:"rdma,omitempty"`
	Ulimits     map[string]string `json:"ulimits,omitempty"`
}

// Port is one port to reserve. Want is a requested number (`DEFAULT_n`), 0 for any; Port is 0 until it is claimed.
type Port struct {
	Name    string `json:"name"` // the configuration key: global.ps.port
	Want    int    `json:"want"`
	Port    int    `json:"port"`
	Allowed string `json:"allowed,omitempty"`
	// Shared: written without {PER_CONTAINER}, so all instances should have the same number.
	Shared bool `json:"shared,omitempty"`
	// Exact: Want or no port.
	Exact bool `json:"exact,omitempty"`
}

// peerPort is a port of another component: of its instance with the lowest index. It is 0 before the roster is known.
type peerPort struct {
	Component string `json:"component"`
	Name      string `json:"name"` // as Port.Name
}

// Export is one value to publish once the ports are known.
type Export struct {
	Group    string `json:"group"`
	Name     string `json:"name"`
	Template string `json:"template"`
	Address  bool   `json:"address,omitempty"` // the member's address in the ClusterSpec
	Value    string `json:"-"`                 // Template with all but the host and the ports filled in
}

// barrier names the components to wait for, the longest wait in seconds, and what must start before.
type barrier struct {
	WaitsFor []string `json:"waits_for"`
	After    []string `json:"after,omitempty"` // what must hold in the gang before the start: ps-STARTED
	Timeout  float64  `json:"timeout"`
}

// Restart is the restart policy; times in seconds.
type Restart struct {
	Scope      string  `json:"scope"`
	Budget     int     `json:"budget"`
	Window     float64 `json:"window"`
	BackoffMin float64 `json:"backoff_min"`
	BackoffMax float64 `json:"backoff_max"`
	Refill     string  `json:"refill"`
}

// complete counts the failed and succeeded instances that end the job; nil means never.
type complete struct {
	MinFailed    *int `json:"min_failed"`
	MinSucceeded *int `json:"min_succeeded"`
}

// stop is how the process is asked to end; Grace in seconds.
type stop struct {
	Signal string  `json:"signal"`
	Grace  float64 `json:"grace"`
}

// Checkpoint says where checkpoints are and how one is recognised.
type Checkpoint struct {
	Dir     string `json:"dir"` // a folder, or the URL of one that the process itself accesses
	Pattern string `json:"pattern"`
	Whole   string `json:"whole,omitempty"`
	Marker  string `json:"marker,omitempty"`
	Sync    string `json:"sync,omitempty"`
	Keep    int    `json:"keep,omitempty"`
	Signal  string `json:"signal,omitempty"`
	Ranks   string `json:"ranks,omitempty"` // how the checkpoints of the instances belong together; empty: auto
}

// Start is what a roster adds: the variables and files of one start. The paths of Files are relative to the instance's
// folder.
type Start struct {
	Argv  []string          `json:"argv"`
	Env   map[string]string `json:"env"`
	Files map[string]string `json:"files"`
}

// Discovery is how others find the instance in Consul, if that is the registry.
type Discovery struct {
	Service string `json:"service"` // the service of the component's instances
	Tag     string `json:"tag"`     // the tag of this instance alone
	// Address is the name that the gang uses in place of the host; empty: the host's address.
	Address string `json:"address,omitempty"`
}

// Side is a process beside the instance's own.
type Side struct {
	Name string            `json:"name"`
	Argv []string          `json:"argv"`
	Env  map[string]string `json:"env,omitempty"`  // over that of the process
	Port string            `json:"port,omitempty"` // name of its port among Ports; empty: none
	// Inner is the name of the port at which it listens on the loopback, where the agent asks for a key at Port; empty:
	// it listens at Port itself.
	Inner   string `json:"inner,omitempty"`
	HTTP    bool   `json:"http,omitempty"` // it serves HTTP there: one that does not answer is started again
	Restart bool   `json:"restart"`
	// an end with 0 is its last one, and the instance waits for it after the process has ended with 0
	Finishes bool `json:"finishes,omitempty"`
	// Folder is below the folder where the process starts; it is copied to History, a URL, at the run's end
	Folder  string `json:"folder,omitempty"`
	History string `json:"history,omitempty"`
	Why     string `json:"why"` // muster.side, or the framework that needs it
	// Verbatim is how many of the first words of Argv come from an image.
	Verbatim int `json:"-"`
	// Literal is the one word of Argv without placeholders, as in Process.
	Literal string `json:"-"`
}
