// Package appdef holds App, the one model of a job that every dialect loads into, and its rules.
//
// What enters are values and fs.FS; what leaves is an App or the full list of Problems. The
// package refuses to know the machine: no clock, no network, no os.
//
// Texts in an App keep their placeholders (`${USER}`, `${ps_HOST}`, `${@//site/global/x}`): Expand
// resolves them where the values are known. That keeps the digest the same for every user and host.
package appdef

// App is the definition of a job: what a package, a job file or a command line says, merged,
// defaulted and validated once, then frozen.
type App struct {
	Name    string `json:"name"`
	Release string `json:"release,omitempty"` // application.version
	Comment string `json:"comment,omitempty"`
	Dialect string `json:"dialect"`          // slider, pai, hbox
	Schema  string `json:"schema,omitempty"` // metainfo schemaVersion: 2.0 or 2.1

	Components      []Component    `json:"components"` // metainfo order
	ExportGroups    []ExportGroup  `json:"export_groups,omitempty"`
	CommandOrders   []CommandOrder `json:"command_orders,omitempty"`
	Packages        []Package      `json:"packages,omitempty"`
	ConfigFiles     []ConfigFile   `json:"config_files,omitempty"`
	ExportedConfigs []string       `json:"exported_configs,omitempty"`
	Addons          []Addon        `json:"addons,omitempty"`
	// AppResources are the files of application.resources that the package has, relative to its top:
	// each instance gets them in app/resources, under their own names without folders.
	AppResources []string `json:"app_resources,omitempty"`

	// Config is appConfig's global section, Resources that of resources.json; keys as written.
	Config    map[string]string `json:"config,omitempty"`
	Resources map[string]string `json:"resources,omitempty"`
	// Defaults are the dictionaries of package/configuration/<dict>.xml: used where a key is absent.
	Defaults map[string]map[string]string `json:"defaults,omitempty"`

	Settings AppSettings `json:"settings"`

	// Kept are fields that are understood but not acted upon, by JSON pointer
	// (`metainfo.json#/application/components/0/dockerContainers`).
	Kept map[string]any `json:"kept,omitempty"`
	// Origins says where a value came from, by `<component>.<key>` or `<key>`; not part of the digest.
	Origins map[string]string `json:"-"`
	// Vars are the client's names that the command line gives (`--set ZK_HOST=…`); not part of the digest.
	Vars map[string]string `json:"-"`
	// Places says where a part of the App was written, by its pointer in the App
	// (`/components/0/priority`, `/config/site.global.x`); Validate reports there. Not part of the digest.
	Places map[string]Place `json:"-"`
	// Warnings are the problems that did not stop the load; not part of the digest.
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

	CompExports      []ExportRef    `json:"comp_exports,omitempty"`
	AppExports       []ExportRef    `json:"app_exports,omitempty"`
	ComponentExports []Export       `json:"component_exports,omitempty"`
	CommandScript    *CommandScript `json:"command_script,omitempty"`
	Commands         []Command      `json:"commands,omitempty"`
	ConfigFiles      []ConfigFile   `json:"config_files,omitempty"`
	PublishConfig    bool           `json:"publish_config,omitempty"`
	AutoStart        bool           `json:"auto_start,omitempty"` // autoStartOnFailure
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

// ExportRef names one export of one group, written `group-export` (split at the first `-` that
// yields a known group).
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

// Addon is an add-on package. It is told of and kept; its commands are not run.
type Addon struct {
	Name       string           `json:"name"`
	Version    string           `json:"version,omitempty"`
	Path       string           `json:"path"`                 // as appConfig has it; "." is the package itself
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

// What START runs (muster.start), where muster.command does not say.
const (
	StartScript  = "script"  // the package's commandScript or commands
	StartBuiltin = "builtin" // the framework's own command
)

// Max as a limit means: as much as the launcher grants (`"yarn.memory": "max"`).
const Max = -1

// What a container without an image makes of the host's root.
const (
	RootReadOnly = "read-only"
	RootOverlay  = "overlay"
)

// Limits are what one instance may use.
type Limits struct {
	MemoryMB   int               `json:"memory_mb"` // Max: all that the launcher grants
	VCores     int               `json:"vcores"`    // Max likewise
	CPUHard    bool              `json:"cpu_hard"`
	SwapMB     int               `json:"swap_mb"`
	HighMB     int               `json:"high_mb,omitempty"`   // 0: none
	Autoscale  float64           `json:"autoscale,omitempty"` // share of MemoryMB that a restart for want of memory adds
	Pids       int               `json:"pids"`                // 0: none
	ShmMB      int               `json:"shm_mb"`              // 0: half of memory
	GPUs       int               `json:"gpus"`
	GPUType    string            `json:"gpu_type"`
	GPUMemory  int               `json:"gpu_memory_mb"`
	RDMA       bool              `json:"rdma"`
	Ulimits    map[string]string `json:"ulimits,omitempty"`
	Image      string            `json:"image,omitempty"`
	ImageAuth  string            `json:"image_auth,omitempty"`
	User       string            `json:"user,omitempty"`
	Root       string            `json:"root,omitempty"` // RootReadOnly (also ""), RootOverlay
	NodeLabel  string            `json:"node_label,omitempty"`
	Placement  int               `json:"placement,omitempty"`
	LogInclude string            `json:"log_include,omitempty"`
	LogExclude string            `json:"log_exclude,omitempty"`
}

// Role says who is waited for, who ends the job and who is ended with it.
type Role string

// The roles. PS, Worker, Chief and Evaluator are waited for; Chief and Worker end the job.
const (
	RolePS        Role = "ps"
	RoleWorker    Role = "worker"
	RoleChief     Role = "chief"
	RoleEvaluator Role = "evaluator"
	RoleService   Role = "service"
)

// Scope says how much restarts when one process fails.
type Scope string

// The scopes of muster.restart.
const (
	ScopeInstance Scope = "instance"
	ScopeGang     Scope = "gang"
	ScopeNever    Scope = "never"
)

// AppSettings are the `muster.*` keys that hold for the whole app.
type AppSettings struct {
	Framework      string  `json:"framework"`       // resolved: tensorflow, none, …
	FrameworkWhy   string  `json:"-"`               // why it was chosen, for the plan
	Barrier        Seconds `json:"barrier_timeout"` // 1800
	StageTimeout   Seconds `json:"stage_timeout"`   // 1800
	Timeout        Seconds `json:"timeout"`         // 0: none
	Duration       Seconds `json:"duration"`        // 0: none
	Retry          int     `json:"retry"`           // re-forms the whole gang
	AllowedPorts   string  `json:"allowed_ports"`   // site.global.slider.allowed.ports
	GangBudget     Restart `json:"restart"`         // budget of the gang scope
	RestartDefault Scope   `json:"restart_default"` // what components without muster.restart get
}

// ComponentSettings are the `muster.*` keys of one component, defaulted.
type ComponentSettings struct {
	Role           Role              `json:"role"`
	ClusterExport  ExportRef         `json:"cluster_export"` // zero: none
	Command        string            `json:"command,omitempty"`
	CommandFrom    string            `json:"command_from,omitempty"` // muster.command, builtin, commands, commandScript, ""
	Start          string            `json:"start"`                  // StartScript, StartBuiltin; muster.command wins over both
	StatusInterval Seconds           `json:"status_interval"`        // how often the script's STATUS is asked; 0: never
	ResumeArgs     string            `json:"resume_args,omitempty"`
	Restart        Restart           `json:"restart"`
	Complete       Complete          `json:"complete"`
	Stop           Stop              `json:"stop"`
	Checkpoint     Checkpoint        `json:"checkpoint"`
	Hold           Seconds           `json:"hold"`
	Env            map[string]string `json:"env,omitempty"`
	Secrets        map[string]string `json:"secrets,omitempty"` // NAME → file:…, env:…, keyring:…
	Python         string            `json:"python,omitempty"`  // muster.python
	TFArgs         *string           `json:"tensorflow_args,omitempty"`
}

// Restart is the crash-loop policy.
type Restart struct {
	Scope      Scope   `json:"scope"`
	Explicit   bool    `json:"explicit,omitempty"` // Scope was written in the definition, not defaulted
	Budget     int     `json:"budget"`             // restarts within Window; -1: no limit
	Window     Seconds `json:"window"`
	BackoffMin Seconds `json:"backoff_min"`
	BackoffMax Seconds `json:"backoff_max"`
	Refill     string  `json:"refill"` // checkpoint, never
}

// Complete counts failed and succeeded instances that end the job. A nil MinFailed means never, a
// nil MinSucceeded that no count does: the job has succeeded when all its chief and worker instances have.
type Complete struct {
	MinFailed    *int `json:"min_failed"`
	MinSucceeded *int `json:"min_succeeded"`
}

// Stop is how a process is asked to end.
type Stop struct {
	Signal string  `json:"signal"` // TERM
	Grace  Seconds `json:"grace"`  // 0: the kill window less 2 s, at most 30 s
}

// Checkpoint says where the app saves itself and how a save is recognised.
type Checkpoint struct {
	Dir     string `json:"dir,omitempty"` // empty: the app's shared checkpoint folder
	Pattern string `json:"pattern,omitempty"`
	Sync    string `json:"sync,omitempty"`
	Keep    int    `json:"keep,omitempty"`
	Signal  string `json:"signal,omitempty"`
}
