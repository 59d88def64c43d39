package plan

// PAI is what the tasks of a PAI job are told beside the roster: frameworks makes their variables of it.
type PAI struct {
	Version        string `json:"version"` // appdef.PAI05, PAI014, PAI1
	Job            string `json:"job"`     // jobName as written
	User           string `json:"-"`       // who submitted it; not printed: it belongs to the host
	DefaultFS      string `json:"default_fs"`
	DataDir        string `json:"data_dir"`
	OutputDir      string `json:"output_dir"`
	CodeDir        string `json:"code_dir"`
	VirtualCluster string `json:"virtual_cluster"`
	KillAll        int    `json:"kill_all"` // killAllOnCompletedTaskNumber; 0: none
	// Env are the job's own variables: told as they are written, after and over PAI's.
	Env   map[string]string `json:"env,omitempty"`
	Roles []PAIRole         `json:"roles"` // in the order of the job file
}

// PAIRole is one task role. Tasks, where a roster is known, are counted there.
type PAIRole struct {
	Name         string    `json:"name"`
	Tasks        int       `json:"tasks"`
	CPUs         int       `json:"cpus"`
	MemoryMB     int       `json:"memory_mb"`
	GPUs         int       `json:"gpus"`
	ShmMB        int       `json:"shm_mb"`
	MinFailed    *int      `json:"min_failed"`
	MinSucceeded *int      `json:"min_succeeded"`
	Ports        []PAIPort `json:"ports"` // static labels first, then dynamic, each in the order of the file
}

// PAIPort is a label of a portList and the names of its ports in a Row's Ports.
type PAIPort struct {
	Label string   `json:"label"`
	Names []string `json:"names"`
}

// HBox is what the containers of an HBox submission are told beside the roster.
type HBox struct {
	Type     string `json:"type"` // TENSORFLOW, …
	Single   bool   `json:"single,omitempty"`
	GPUs     int    `json:"gpus"` // the most that a role asks for
	Output   string `json:"output_index"`
	Input    string `json:"input_path"`
	PSCPUs   int    `json:"ps_cpus,omitempty"`
	PSMemory int    `json:"ps_memory_mb,omitempty"`
}

// Inputs are what is dealt out to this instance: which files, is known when they are listed.
type Inputs struct {
	Strategy string  `json:"strategy"`
	From     []Input `json:"from"`    // by name
	Worker   int     `json:"worker"`  // position of this instance among those that read
	Workers  int     `json:"workers"` // how many read; 0: this one has empty folders alone
	Rename   bool    `json:"rename,omitempty"`
	Whole    bool    `json:"whole,omitempty"`
	// files of each input that the first gets, and no more; 0: its turn comes as everybody's
	Chief   int    `json:"chief,omitempty"`
	Shuffle bool   `json:"shuffle,omitempty"`
	Epochs  int    `json:"epochs,omitempty"`
	Format  string `json:"format,omitempty"`
	Stream
	// ListLength is how many characters all variables may have; 0: HBox's number.
	ListLength int  `json:"list_length,omitempty"`
	Parallel   int  `json:"parallel,omitempty"`
	Retries    *int `json:"retries,omitempty"`
}

// Stream is how the records of a stream of inputs are read, as appdef.Inputs has it.
type Stream struct {
	Splits     int    `json:"splits,omitempty"`
	Lines      int    `json:"lines,omitempty"`
	Separator  string `json:"separator,omitempty"`
	Cache      bool   `json:"cache,omitempty"`
	CacheLimit int    `json:"cache_limit_mb,omitempty"`
}

// Input is one local name and the remote paths and patterns that feed it.
type Input struct {
	Name string   `json:"name"`
	From []string `json:"from"`
}

// Outputs are what this instance leaves.
type Outputs struct {
	Strategy string   `json:"strategy"`
	To       []Output `json:"to"`     // by name
	Folder   string   `json:"folder"` // below To, the instance's own; empty: none, the local name instead
	Failed   bool     `json:"failed,omitempty"`
	Format   string   `json:"format,omitempty"`
	// Interim is where interim saves lie below To, before their time; Incremental has them without what has not
	// changed.
	Interim     string `json:"interim,omitempty"`
	Incremental bool   `json:"incremental,omitempty"`
	// SaveEvery is in seconds; 0: when somebody asks.
	SaveEvery float64 `json:"save_every,omitempty"`
	Parallel  int     `json:"parallel,omitempty"` // files at a time; 0: as many as there usually are
}

// DefaultSaves is where interim saves lie below an output that names no other path; a time stamp follows.
const DefaultSaves = "interResult/interResult_"

// Output is one local folder and where it goes.
type Output struct {
	Name string `json:"name"`
	To   string `json:"to"` // empty: nowhere, another instance leaves its own
}

// MPI is an instance's part in a job whose processes mpirun starts, by one instance in all of them.
type MPI struct {
	Launches bool `json:"launches"` // it is the one that runs mpirun; the others wait
	// Slots are the processes in each container, by component.
	Slots map[string]int `json:"slots"`
}

// Hadoop is what every process is told of the host's Hadoop, so that libhdfs and Hadoop's own commands work in it.
type Hadoop struct {
	Conf     string   `json:"conf"`
	Home     string   `json:"home,omitempty"`
	HDFSHome string   `json:"hdfs_home,omitempty"`
	Java     string   `json:"java,omitempty"`
	JVM      string   `json:"jvm,omitempty"`
	Native   string   `json:"native,omitempty"`
	User     string   `json:"user,omitempty"`
	Tickets  string   `json:"tickets,omitempty"` // path of the process's own ticket cache
	Krb5     string   `json:"krb5,omitempty"`    // KRB5_CONFIG
	Classes  []string `json:"classes"`           // folders whose jars are in CLASSPATH
	// Jars are CLASSPATH's own. They belong to the host and are not printed.
	Jars []string `json:"-"`
}
