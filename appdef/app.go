package appdef

// App is the definition of a job: everything that a package, a job file or a command line says, merged, defaulted and
// validated once, then frozen.
type App struct {
	Name    string `json:"name"`
	Release string `json:"release,omitempty"` // application.version
	Comment string `json:"comment,omitempty"`
	Dialect string `json:"dialect"`          // slider, pai, hbox
	Schema  string `json:"schema,omitempty"` // metainfo schemaVersion: 2.0 or 2.1

	Components    []Component    `json:"components"` // metainfo order
	ExportGroups  []ExportGroup  `json:"export_groups,omitempty"`
	CommandOrders []CommandOrder `json:"command_orders,omitempty"`
	Contents

	// Config is appConfig's global section, Resources that of resources.json; keys as written.
	Config    map[string]string `json:"config,omitempty"`
	Resources map[string]string `json:"resources,omitempty"`
	// Defaults are the dictionaries of configuration/<dict>.xml in the package: they apply where a key is absent.
	Defaults map[string]map[string]string `json:"defaults,omitempty"`

	Settings AppSettings `json:"settings"`

	// Kept are fields that are accepted and ignored, by JSON pointer
	// (`metainfo.json#/application/components/0/dockerContainers`).
	Kept map[string]any `json:"kept,omitempty"`
	// JobSecrets are the values of a job file's own secrets, by the name that follows JobSecret in a reference. No text
	// of the definition has them.
	JobSecrets map[string]string `json:"-"`
	Provenance
}

// Contents is what the package holds beside its components.
type Contents struct {
	Packages        []Package    `json:"packages,omitempty"`
	ConfigFiles     []ConfigFile `json:"config_files,omitempty"`
	ExportedConfigs []string     `json:"exported_configs,omitempty"`
	Addons          []Addon      `json:"addons,omitempty"`
	// AppResources are the files of application.resources: relative to the top of the package, or URLs and absolute
	// paths of stores, which may end in #sha256=HEX. Each instance gets them in app/resources, by their ResourceName.
	AppResources []string `json:"app_resources,omitempty"`
}

// Provenance says where the App came from. It is not part of the digest.
type Provenance struct {
	// Origins names the source of each value, by `<component>.<key>` or `<key>`.
	Origins map[string]string `json:"-"`
	// Site names the source of the values that are an administrator's defaults, with the keys of Origins. A package
	// keeps it.
	Site map[string]string `json:"-"`
	// Vars are the client's names that the command line gives (`--set ZK_HOST=…`).
	Vars map[string]string `json:"-"`
	// Places names where each part of the App was written, by its pointer in the App (`/components/0/priority`,
	// `/config/site.global.x`). Validate reports there.
	Places map[string]Place `json:"-"`
	// Warnings are the problems that did not stop the load.
	Warnings Problems `json:"-"`
}

// Component is a role in the app; Instances copies of it run.
type Component struct {
	Name         string `json:"name"`
	Category     string `json:"category"` // MASTER, SLAVE, CLIENT
	Type         string `json:"type"`     // STANDARD, DOCKER
	Instances    int    `json:"-"`        // counts are not part of the digest
	MinInstances int    `json:"min_instances"`
	MaxInstances int    `json:"max_instances"` // -1: no limit
	Priority     int    `json:"priority"`      // yarn.role.priority, 1 is first

	// Config is the component's appConfig section over the global one; Resources likewise.
	Config    map[string]string `json:"config,omitempty"`
	Resources map[string]string `json:"resources,omitempty"`

	Limits   Limits            `json:"limits"`
	Settings ComponentSettings `json:"settings"`

	CompExports      []ExportRef `json:"comp_exports,omitempty"`
	AppExports       []ExportRef `json:"app_exports,omitempty"`
	ComponentExports []Export    `json:"component_exports,omitempty"`
	Scripts
}

// Scripts are what metainfo declares of a component's commands and configuration.
type Scripts struct {
	CommandScript *CommandScript `json:"command_script,omitempty"`
	Commands      []Command      `json:"commands,omitempty"`
	ConfigFiles   []ConfigFile   `json:"config_files,omitempty"`
	PublishConfig bool           `json:"publish_config,omitempty"`
	AutoStart     bool           `json:"auto_start,omitempty"` // autoStartOnFailure
}

// ExportGroup is a named list of published values.
type ExportGroup struct {
	Name    string   `json:"name"`
	Exports []Export `json:"exports"`
}

// Export is a name and the template of its value, e.g. `${ps_HOST}:${site.global.ps.port}`.
type Export struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// ExportRef names one export of one group, written `group-export` (split at the first `-` that yields a known group).
type ExportRef struct {
	Group string `json:"group"`
	Name  string `json:"name"`
}

// CommandOrder says that Component's command waits for what Requires lists.
type CommandOrder struct {
	Component string        `json:"component"`
	Command   string        `json:"command"` // START
	Requires  []Requirement `json:"requires"`
}

// Requirement is one `COMPONENT-STARTED` or `COMPONENT-INSTALLED`.
type Requirement struct {
	Component string `json:"component"`
	State     string `json:"state"`
}

// Package is one entry of metainfo's packages: type tarball, zip or folder.
type Package struct {
	Type string `json:"type"`
	Name string `json:"name"`
}

// Addon is an add-on package: its INSTALL runs in the components that it names, behind their own.
type Addon struct {
	Name       string           `json:"name"`
	Version    string           `json:"version,omitempty"`
	Path       string           `json:"path"`                 // in the package; "." is itself
	Components []AddonComponent `json:"components,omitempty"` // none: the add-on is not in the package
}

// AddonComponent is what an add-on does to a component, or to ALL.
type AddonComponent struct {
	Name     string         `json:"name"`
	Script   *CommandScript `json:"script,omitempty"`
	Commands []Command      `json:"commands,omitempty"`
}

// ConfigFile declares a dictionary besides global.
type ConfigFile struct {
	Type       string `json:"type"`
	FileName   string `json:"file_name"`
	Dictionary string `json:"dictionary"`
}

// CommandScript is metainfo's commandScript.
type CommandScript struct {
	Script  string  `json:"script"` // relative to package/
	Type    string  `json:"type"`   // PYTHON
	Timeout Seconds `json:"timeout"`
	Missing bool    `json:"missing,omitempty"` // the package has no such file
}

// Command is one entry of metainfo 2.1's commands.
type Command struct {
	Name    string `json:"name"`              // START by default
	Exec    string `json:"exec"`              // of PYTHON a script, relative to package/
	Type    string `json:"type"`              // SHELL, PYTHON
	Missing bool   `json:"missing,omitempty"` // of PYTHON: the package has no such file
}

// What START runs (muster.start) without muster.command.
const (
	StartScript  = "script"  // the package's commandScript or commands
	StartBuiltin = "builtin" // the framework's own command
)

// What an instance is whose START has ended with 0 (muster.up). shim/script decides by it; empty is upAuto.
const (
	upAuto    = "auto"    // what START has left, else what STATUS says, else START was the program
	UpStart   = "start"   // START is the program
	UpProcess = "process" // what START has left
	UpStatus  = "status"  // what STATUS says
)

// Max as a limit means all that the launcher grants (`"yarn.memory": "max"`).
const Max = -1

// How a container without an image sees the host's root.
const (
	rootReadOnly = "read-only"
	RootOverlay  = "overlay"
)

// HostRoot as muster.image is no image: the process sees the host's root.
const HostRoot = "host"

// Limits are what one instance may use.
type Limits struct {
	MemoryMB int  `json:"memory_mb"` // Max: all that the launcher grants
	VCores   int  `json:"vcores"`    // Max likewise
	CPUHard  bool `json:"cpu_hard"`
	SwapMB   int  `json:"swap_mb"`
	HighMB   int  `json:"high_mb,omitempty"` // 0: none
	// share of MemoryMB that a restart after out of memory adds, or with AutoscaleAt any restart
	Autoscale   float64           `json:"autoscale,omitempty"`
	AutoscaleAt string            `json:"autoscale_at,omitempty"` // AutoscaleRetry; empty: out of memory
	Pids        int               `json:"pids"`                   // 0: none
	ShmMB       int               `json:"shm_mb"`                 // 0: half of memory
	StorageGB   int               `json:"storage_gb,omitempty"`
	GPUs        int               `json:"gpus"`
	GPUType     string            `json:"gpu_type"`
	GPUMemory   int               `json:"gpu_memory_mb"`
	RDMA        bool              `json:"rdma"`
	Ulimits     map[string]string `json:"ulimits,omitempty"`
	Image       string            `json:"image,omitempty"`
	ImageAuth   string            `json:"image_auth,omitempty"`
	User        string            `json:"user,omitempty"`
	Root        string            `json:"root,omitempty"` // RootReadOnly (also ""), RootOverlay
	NodeLabel   string            `json:"node_label,omitempty"`
	Placement   int               `json:"placement,omitempty"`
	LogInclude  string            `json:"log_include,omitempty"`
	LogExclude  string            `json:"log_exclude,omitempty"`
}

// Role decides whether the barrier waits for an instance, and whether its end ends the job.
type Role string

// The roles. The barrier waits for PS, Worker, Chief and Evaluator; Chief and Worker end the job.
const (
	RolePS        Role = "ps"
	RoleWorker    Role = "worker"
	RoleChief     Role = "chief"
	RoleEvaluator Role = "evaluator"
	RoleService   Role = "service"
)

// scope is what restarts when one process fails.
type scope string

// The scopes of muster.restart.
const (
	ScopeInstance scope = "instance"
	ScopeGang     scope = "gang"
	ScopeNever    scope = "never"
)

// AppSettings are the `muster.*` keys that hold for the whole app.
type AppSettings struct {
	Framework    string  `json:"framework"`       // resolved: tensorflow, none, …
	FrameworkWhy string  `json:"-"`               // why it was chosen, for the plan
	Barrier      Seconds `json:"barrier_timeout"` // 1800
	StageTimeout Seconds `json:"stage_timeout"`   // 1800
	Timeout      Seconds `json:"timeout"`         // 0: none
	Duration     Seconds `json:"duration"`        // 0: none
	// how often outputs are saved during the run; 0: only when asked to
	SaveEvery Seconds `json:"save_every,omitempty"`
	// how many full restarts follow after failures; RetryForever, RetryAlways
	Retry          int     `json:"retry"`
	AllowedPorts   string  `json:"allowed_ports"`   // site.global.slider.allowed.ports
	Store          string  `json:"-"`               // where a submission puts what hosts need; agents do not use it
	GangBudget     Restart `json:"restart"`         // budget of the gang scope
	RestartDefault scope   `json:"restart_default"` // the scope of components without muster.restart
	Total          Total   `json:"total,omitzero"`
	TensorFlowMode string  `json:"tensorflow_mode,omitempty"` // inGraph; empty: each worker runs the script
	InheritEnv     string  `json:"inherit_env,omitempty"`     // InheritHBox; empty: the allow-list of the manual
	Address        string  `json:"address,omitempty"`         // AddressDNS; empty: the hosts' addresses
	PAI            PAI     `json:"pai,omitzero"`
	HBox           HBox    `json:"hbox,omitzero"`
}

// Values of muster.retry below zero.
const (
	RetryForever = -1 // failures of unknown cause are retried without limit
	RetryAlways  = -2 // the gang restarts after every end, also a success
)

// Total counts over the whole app, except services and evaluators. Zero values mean never.
type Total struct {
	MinSucceeded int     `json:"min_succeeded,omitempty"` // the app succeeds when this many instances ended with 0
	MinFailed    int     `json:"min_failed,omitempty"`    // the app fails when this many instances failed for good
	FailedShare  float64 `json:"failed_share,omitempty"`  // MinFailed as a share of all, 0 to 1, rounded up
}

// inGraph is the mode of TensorFlow in which only the chief runs the script, and all others run a server.
const inGraph = "in-graph"

// AddressDNS addresses members by their names in Consul, which stay when a member moves.
const AddressDNS = "dns"

// InheritHBox drops every variable that HBox's container does not set.
const InheritHBox = "hbox"

// The versions of OpenPAI, by their variables and rules.
const (
	PAI05  = "0.5"  // and QIZHI
	PAI014 = "0.14" // and SCM
	PAI1   = "1"
)

// PAI are the values of a job file that its tasks get. The paths may contain placeholders.
type PAI struct {
	Version        string `json:"version,omitempty"` // PAI05, PAI014, PAI1; empty: no variables of PAI
	VersionWhy     string `json:"-"`                 // what in the job file shows the version; empty if it was set
	DataDir        string `json:"data_dir,omitempty"`
	OutputDir      string `json:"output_dir,omitempty"`
	CodeDir        string `json:"code_dir,omitempty"` // each task gets a copy of its content
	VirtualCluster string `json:"virtual_cluster,omitempty"`
	Debug          bool   `json:"debug,omitempty"` // jobEnvs.isDebug
}

// AutoscaleRetry grows memory with each restart, as HBox does.
const AutoscaleRetry = "retry"

// DefaultFSVariable tells the processes of an HBox submission what stands before an absolute path of the default
// filesystem: hdfs://HOST:PORT, or a folder.
const DefaultFSVariable = "MUSTER_DEFAULT_FS"

// HBox are the values of a submission that its containers get.
type HBox struct {
	Type  string `json:"type,omitempty"`  // --app-type in upper case; empty: no variables of HBox
	Login bool   `json:"login,omitempty"` // as GivesLogin, for a job of any type
	// JarsLast has Java find the user's jars behind those of the host and of Hadoop.
	JarsLast bool `json:"jars_last,omitempty"`
}

// GivesLogin tells whether HBox tells who submits the job how to log in, with a password.
func (h HBox) GivesLogin() bool { return h.Login || h.Type == "VPC" || h.Type == "DIGITS" }

// Side is a process beside the main one of its instance, in the same container. It is supervised, restarts when it
// ends, and gets a port if it asks for one. Its end does not affect the verdict. It ends with the instance's process.
type Side struct {
	Name string `json:"name"`
	// text for a shell; its port is ${site.side.NAME} in the text, and MUSTER_PORT_SIDE_NAME in its environment
	Command string `json:"command"`
	Index   int    `json:"index"`          // the only instance to run beside; EveryIndex
	Restart bool   `json:"restart"`        // it restarts after any end
	Port    bool   `json:"port,omitempty"` // it gets a port, called side.NAME
	HTTP    bool   `json:"http,omitempty"` // it serves HTTP there: one that does not answer is warned of, and restarts
	// Key: the agent asks for a key at that port, and passes on to the one called side.NAME.inner, at the loopback
	Key bool `json:"key,omitempty"`
	// Folder is what it shows, below the folder where the process starts; it is copied to History at the run's end
	Folder  string `json:"folder,omitempty"`
	History string `json:"history,omitempty"` // path or URL; empty: it is not copied
}

// EveryIndex as Side.Index means beside every instance of the component.
const EveryIndex = -1

// How inputs reach a process, and how outputs leave it: HBox's strategies.
const (
	StrategyDownload    = "download"    // files are copied into the instance's folder
	StrategyPlaceholder = "placeholder" // the process gets a list of its files: INPUT_FILE_LIST
	StrategyStream      = "stream"      // lines go to stdin, or come from stdout
	StrategyUpload      = "upload"      // folders are uploaded at the end
)

// Inputs are what the instances of a component read; they share the files out among themselves.
type Inputs struct {
	// local name → paths or URLs with commas between them, globs allowed
	From     map[string]string `json:"from,omitempty"`
	Strategy string            `json:"strategy,omitempty"`
	Rename   bool              `json:"rename,omitempty"` // isRenameInputFile
	Whole    bool              `json:"whole,omitempty"`  // placeholder: every instance gets the list of all files
	// files that the first reader gets, and no more; 0: as many as the others
	Chief   int    `json:"chief,omitempty"`
	Shuffle bool   `json:"shuffle,omitempty"`
	Epochs  int    `json:"epochs,omitempty"` // of a stream
	Format  string `json:"format,omitempty"` // InputFormat class of a stream
	// Conf are properties of Hadoop's for a format that users wrote, those of Outputs as well.
	Conf map[string]string `json:"conf,omitempty"`
	// Settings of a stream: the number of splits to make, 0 is 1; the lines of a split of NLineInputFormat, 0 is 1; the
	// separator before the value for KeyValueTextInputFormat, empty is a tab; whether later epochs read a copy on disk,
	// and its largest size in MB, 0 is StreamCacheLimit.
	Splits     int    `json:"splits,omitempty"`
	Lines      int    `json:"lines,omitempty"`
	Separator  string `json:"separator,omitempty"`
	Cache      bool   `json:"cache,omitempty"`
	CacheLimit int    `json:"cache_limit,omitempty"`
	// ListLength is how many characters all variables may have; a longer list of files goes into a file. 0: HBox's
	// number.
	ListLength int  `json:"list_length,omitempty"`
	Parallel   int  `json:"parallel,omitempty"` // files downloaded at the same time; 0: the default number
	Retries    *int `json:"retries,omitempty"`  // retries of a file without progress; nil: the default number
}

// StreamCacheLimit is HBox's default of hbox.inputformat.cachesize.limit, in MB.
const StreamCacheLimit = 100 * 1024

// Outputs are what the instances of a component upload.
type Outputs struct {
	To       map[string]string `json:"to,omitempty"` // local name → path or URL
	Strategy string            `json:"strategy,omitempty"`
	Only     *int              `json:"only,omitempty"`   // the only instance that uploads; nil: all
	Flat     bool              `json:"flat,omitempty"`   // of a single worker: no folder of the container's name
	Failed   bool              `json:"failed,omitempty"` // also upload the outputs of a failed process
	// Incremental: an interim save contains only the files that changed since the previous one.
	Incremental bool `json:"incremental,omitempty"`
	// the path of interim saves below the output, without their time; empty: HBox's path
	Interim  string            `json:"interim,omitempty"`
	Format   string            `json:"format,omitempty"`   // OutputFormat class of a stream
	Conf     map[string]string `json:"conf,omitempty"`     // as Inputs.Conf
	Parallel int               `json:"parallel,omitempty"` // files uploaded at the same time; 0: the default number
}

// ComponentSettings are the `muster.*` keys of one component, defaulted.
type ComponentSettings struct {
	Role          Role      `json:"role"`
	ClusterExport ExportRef `json:"cluster_export"` // zero: none
	Command       string    `json:"command,omitempty"`
	// muster.command, builtin, commands, commandScript, ""
	CommandFrom string `json:"command_from,omitempty"`
	// StartScript, StartBuiltin; muster.command wins over both
	Start          string     `json:"start"`
	StatusInterval Seconds    `json:"status_interval"` // how often the script's STATUS command runs; 0: never
	Up             string     `json:"up,omitempty"`    // upAuto, UpStart, UpProcess, UpStatus; empty: upAuto
	ResumeArgs     string     `json:"resume_args,omitempty"`
	Restart        Restart    `json:"restart"`
	Complete       Complete   `json:"complete"`
	Stop           Stop       `json:"stop"`
	Checkpoint     Checkpoint `json:"checkpoint"`
	TimeSettings
	Env map[string]string `json:"env,omitempty"`
	SecretSettings
	Python    string  `json:"python,omitempty"` // muster.python
	TFArgs    *string `json:"tensorflow_args,omitempty"`
	Processes int     `json:"processes,omitempty"` // muster.nproc: processes in each container; 0: one
	PortSettings
	Sides []Side `json:"sides,omitempty"` // by name
	// local name → path or URL of which each instance gets a copy
	Files map[string]string `json:"files,omitempty"`
	// local name → path or URL that is unpacked for each instance
	Archives       map[string]string `json:"archives,omitempty"`
	FilesUnchecked bool              `json:"files_unchecked,omitempty"`
	Inputs         Inputs            `json:"inputs,omitzero"`
	Outputs        Outputs           `json:"outputs,omitzero"`
}

// PortSettings are the ports of one component.
type PortSettings struct {
	PortsExact bool   `json:"ports_exact,omitempty"` // {DEFAULT_n} is that port or none
	SSH        string `json:"ssh,omitempty"`         // an ssh server: true, false; empty: by the dialect
}

// TimeSettings are times of one component.
type TimeSettings struct {
	Hold Seconds `json:"hold"`
	// HoldEnds: a failure counts at once, and the container that ended the run is kept.
	HoldEnds bool    `json:"hold_ends,omitempty"`
	Silence  Seconds `json:"silence,omitempty"` // below 0: it is not noticed; 0: by the role
}

// Restart is the restart policy.
type Restart struct {
	Scope      scope   `json:"scope"`
	Explicit   bool    `json:"explicit,omitempty"` // Scope was written in the definition, not defaulted
	Budget     int     `json:"budget"`             // restarts within Window; -1: no limit
	Window     Seconds `json:"window"`
	BackoffMin Seconds `json:"backoff_min"`
	BackoffMax Seconds `json:"backoff_max"`
	Refill     string  `json:"refill"` // checkpoint, never
}

// Complete counts failed and succeeded instances that end the job. A nil MinFailed means never. With a nil MinSucceeded
// no count ends the job: it succeeds when all its chiefs and workers have succeeded.
type Complete struct {
	MinFailed    *int `json:"min_failed"`
	MinSucceeded *int `json:"min_succeeded"`
}

// Stop is how a process is asked to end.
type Stop struct {
	Signal string  `json:"signal"` // TERM
	Grace  Seconds `json:"grace"`  // 0: the kill window less 2 s, at most 30 s
}

// Checkpoint says where the app writes checkpoints and how a complete one is recognised.
type Checkpoint struct {
	Dir     string `json:"dir,omitempty"`   // empty: the app's shared checkpoint folder
	Reach   string `json:"reach,omitempty"` // of a Dir in a store: auto, process, muster; empty: auto
	Pattern string `json:"pattern,omitempty"`
	Whole   string `json:"whole,omitempty"`
	Marker  string `json:"marker,omitempty"`
	Sync    string `json:"sync,omitempty"`
	Keep    int    `json:"keep,omitempty"`
	Signal  string `json:"signal,omitempty"`
	// how the checkpoints of the component's instances belong together; empty: auto
	Ranks string `json:"ranks,omitempty"`
}

// JobSecret begins a reference to a value in App.JobSecrets.
const JobSecret = "job:"

// SecretSettings are the secrets of a component's process.
type SecretSettings struct {
	Secrets map[string]string `json:"secrets,omitempty"` // NAME → file:…, env:…, keyring:…
	// SecretForm is how the process gets its secrets: SecretsFile or SecretsEnv alone; empty: both.
	SecretForm string `json:"secret_form,omitempty"`
}
