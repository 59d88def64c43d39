package plan

// PAI is what the tasks of a PAI job get besides the roster: frameworks makes their variables from it.
type PAI struct {
	Version        string `json:"version"` // appdef.PAI05, PAI014, PAI1
	Job            string `json:"job"`     // jobName as written
	User           string `json:"-"`       // the submitting user; not printed, because it belongs to the host
	DefaultFS      string `json:"default_fs"`
	DataDir        string `json:"data_dir"`
	OutputDir      string `json:"output_dir"`
	CodeDir        string `json:"code_dir"`
	VirtualCluster string `json:"virtual_cluster"`
	KillAll        int    `json:"kill_all"` // killAllOnCompletedTaskNumber; 0: none
	// Env are the job's own variables: passed on unchanged, over PAI's.
	Env   map[string]string `json:"env,omitempty"`
	Roles []PAIRole         `json:"roles"` // in the order of the job file
}

// PAIRole is one task role. With a roster, the tasks are counted there.
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

// HBox is what the containers of an HBox submission get besides the roster.
type HBox struct {
	Type     string `json:"type"` // TENSORFLOW, …
	Single   bool   `json:"single,omitempty"`
	GPUs     int    `json:"gpus"` // the largest number of any role
	Output   string `json:"output_index"`
	Input    string `json:"input_path"`
	PSCPUs   int    `json:"ps_cpus,omitempty"`
	PSMemory int    `json:"ps_memory_mb,omitempty"`
	JarsLast bool   `json:"jars_last,omitempty"` // as in appdef.HBox
	// Top stands before an absolute path of the default filesystem; empty if nobody has named one.
	Top string `json:"top,omitempty"`
}

// Inputs are this instance's share of the inputs. The files are known only when they are listed.
type Inputs struct {
	Strategy string  `json:"strategy"`
	From     []Input `json:"from"`    // by name
	Worker   int     `json:"worker"`  // position of this instance among the readers
	Workers  int     `json:"workers"` // number of readers; 0: this instance only gets empty folders
	Rename   bool    `json:"rename,omitempty"`
	Whole    bool    `json:"whole,omitempty"`
	// files of each input that the first reader gets, and no more; 0: as many as the others
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

// Stream is how the records of an input stream are read, as in appdef.Inputs.
type Stream struct {
	Splits     int    `json:"splits,omitempty"`
	Lines      int    `json:"lines,omitempty"`
	Separator  string `json:"separator,omitempty"`
	Cache      bool   `json:"cache,omitempty"`
	CacheLimit int    `json:"cache_limit_mb,omitempty"`
	// Shared is where the readers find the splits of a class of the user's; empty: it has one reader, or is none.
	Shared string `json:"shared_splits,omitempty"`
	// Conf are properties of Hadoop's for such a class.
	Conf map[string]string `json:"conf,omitempty"`
}

// Input is one local name and the remote paths and patterns of its files.
type Input struct {
	Name string   `json:"name"`
	From []string `json:"from"`
}

// Outputs are what this instance uploads.
type Outputs struct {
	Strategy string   `json:"strategy"`
	To       []Output `json:"to"`     // by name
	Folder   string   `json:"folder"` // the instance's own folder below To; empty: none, the local name instead
	Failed   bool     `json:"failed,omitempty"`
	Format   string   `json:"format,omitempty"`
	// Interim is the path of interim saves below To, without their time. With Incremental they contain only files that
	// have changed.
	Interim     string `json:"interim,omitempty"`
	Incremental bool   `json:"incremental,omitempty"`
	// SaveEvery is in seconds; 0: only when asked to.
	SaveEvery float64 `json:"save_every,omitempty"`
	Parallel  int     `json:"parallel,omitempty"` // files at the same time; 0: the default number
	// Conf are properties of Hadoop's for a format that is a class of the user's.
	Conf map[string]string `json:"conf,omitempty"`
}

// DefaultSaves is the path of interim saves below an output that names no other; a time stamp follows.
const DefaultSaves = "interResult/interResult_"

// Output is one local folder and its destination.
type Output struct {
	Name string `json:"name"`
	To   string `json:"to"` // empty: nowhere, another instance uploads its own
}

// MPI is an instance's part in an MPI job: mpirun in one instance starts the processes of all.
type MPI struct {
	Launches bool `json:"launches"` // this instance runs mpirun; the others wait
	// Slots are the processes in each container, by component.
	Slots map[string]int `json:"slots"`
}

// Hadoop is what every process gets of the host's Hadoop, for libhdfs and Hadoop's own commands.
type Hadoop struct {
	Conf     string   `json:"conf"`
	Home     string   `json:"home,omitempty"`
	HDFSHome string   `json:"hdfs_home,omitempty"`
	Java     string   `json:"java,omitempty"`
	JVM      string   `json:"jvm,omitempty"`
	Native   string   `json:"native,omitempty"`
	User     string   `json:"user,omitempty"`
	Tickets  string   `json:"tickets,omitempty"` // path of the process's own ticket cache
	Tokens   string   `json:"tokens,omitempty"`  // path of the process's own copy of the agent's token file
	Krb5     string   `json:"krb5,omitempty"`    // KRB5_CONFIG
	Classes  []string `json:"classes"`           // folders whose jars are in CLASSPATH
	// Jars are those that CLASSPATH names one by one. They belong to the host and are not printed.
	Jars []string `json:"-"`
}
