package appdef

import (
	"slices"
	"strings"
)

// Key is one setting that a definition may have beside those of Slider. The table of keys is
// what the loader obeys and what the manual prints.
type Key struct {
	Name    string // muster.restart.budget; a family ends in `.*`: muster.env.*
	Default string // as the manual prints it; empty: none
	Meaning string
	Global  bool     // holds for the whole app; else for a component, and global is its default
	Limit   bool     // at home in resources; else in appConfig. Either is accepted in both.
	Values  []string // the only values there are; none: as Meaning says
	Idle    bool     // understood and kept, but nothing acts on it yet: setting it is a warning
	Instead string   // of an idle key: what there is without it, for the warning

	// Exactly one of the two is set; they store a value or say what they want instead.
	app       func(*AppSettings, string) error
	component func(c *Component, name, text string) error
	null      bool // JSON null is a value
}

// PlacedApart is the bit of Limits.Placement that wants each instance of a component on a host of its own.
const PlacedApart = 4

// Keys lists all settings, in the order of the manual.
func Keys() []Key { return keys() }

// Null tells whether JSON's null is a value of the key.
func (k Key) Null() bool { return k.null }

// keyTable is the outcome of keys, made once per use.
type keyTable []Key

// of finds the key or the family that a name belongs to.
func (t keyTable) of(name string) (Key, bool) {
	if i := slices.IndexFunc(t, func(k Key) bool { return k.matches(name) }); i >= 0 {
		return t[i], true
	}
	return Key{}, false
}

func (t keyTable) names() []string {
	names := make([]string, len(t))
	for i, k := range t {
		names[i] = k.Name
	}
	return names
}

func (k Key) matches(name string) bool {
	if prefix, ok := k.family(); ok {
		return strings.HasPrefix(name, prefix) && len(name) > len(prefix)
	}
	return name == k.Name
}

// family is the prefix of a family's keys, with its dot.
func (k Key) family() (string, bool) {
	prefix, ok := strings.CutSuffix(k.Name, "*")
	return prefix, ok
}

// Frameworks are the names that muster.framework may have besides auto.
func Frameworks() []string {
	return []string{
		"cntk", "horovod", "jax", "lightgbm", "lightlda", "mpi", "mxnet", "none", "pytorch", "tensor2tensor",
		"tensorflow", "xdl", "xflow", "xgboost",
	}
}

func keys() keyTable {
	return slices.Concat(shapeKeys(), restartKeys(), endKeys(), checkpointKeys(), timeKeys(), dialectKeys(),
		processKeys(), fileKeys(), dataKeys(), limitKeys())
}

// shapeKeys say what the gang is.
func shapeKeys() []Key {
	return []Key{
		{
			Name: "muster.framework", Default: "auto", Global: true,
			Meaning: "which environment to build: auto, " + strings.Join(Frameworks(), ", "),
			Values:  append([]string{"auto"}, Frameworks()...),
			app:     (*AppSettings).setFramework,
		},
		{
			Name: "muster.cluster.export", Default: "the first compExport of the form host:port",
			Meaning: "which export, group-export, is the member's address in the ClusterSpec",
			component: func(c *Component, _, text string) error {
				c.Settings.ClusterExport.Name = text // split once the groups are known
				return notEmpty(text)
			},
		},
		{
			Name: "muster.address", Default: "host", Global: true, Values: []string{"host", AddressDNS},
			Meaning: "how members are written to each other: host, by the host's address; dns, by a name in Consul " +
				"that stays when the member moves, for programs that resolve names again",
			app: (*AppSettings).setAddress,
		},
		{
			Name: "muster.role", Default: "by the component's name",
			Meaning: "who is waited for, who ends the job and who is ended with it: chief, worker, ps, evaluator, " +
				"service",
			Values: []string{"chief", "worker", "ps", "server", "evaluator", "service"},
			component: func(c *Component, _, text string) (err error) {
				c.Settings.Role, err = parseRole(text)
				return err
			},
		},
	}
}

func restartKeys() []Key {
	restart := func(set func(r *Restart, text string) error) func(*Component, string, string) error {
		return func(c *Component, _, text string) error { return set(&c.Settings.Restart, text) }
	}
	return []Key{
		{
			Name: "muster.restart", Default: "instance for parameter servers, services and no framework, else gang",
			Meaning:   "what starts again when a process fails: instance, gang, never",
			component: restart((*Restart).setScope),
			Values:    []string{"instance", "gang", "never"},
		},
		{
			Name: "muster.restart.budget", Default: "5", Meaning: "restarts within the window; -1: no limit",
			component: restart((*Restart).setBudget),
		},
		{
			Name: "muster.restart.window", Default: "5m", Meaning: "how long a restart counts; 0: for ever",
			component: restart((*Restart).setWindow),
		},
		{
			Name: "muster.restart.backoff", Default: "1s..1m",
			Meaning:   "the pause before a restart, doubled each time, with jitter",
			component: restart((*Restart).setBackoff),
		},
		{
			Name: "muster.restart.refill", Default: "checkpoint",
			Meaning: "what empties the account of restarts: checkpoint (a newer one), never",
			Values:  []string{"checkpoint", "never"}, component: restart((*Restart).setRefill),
		},
		{
			Name: "muster.retry", Default: "0", Global: true,
			Meaning: "how often the whole gang is formed anew after a failure that its own restarts did not mend; " +
				"-1: without end; -2: after every end. What the program cannot help (a lost host, a signal from " +
				"outside) does not count, what it will do again (out of memory) is not retried",
			app: func(s *AppSettings, text string) (err error) { s.Retry, err = parseRetry(text); return err },
		},
	}
}

// endKeys say when the job ends and how a process is asked to.
func endKeys() []Key {
	return []Key{
		{
			Name: "muster.complete.minFailed", Default: "1", null: true,
			Meaning: "so many failed instances fail the job; null: never",
			component: func(c *Component, _, text string) (err error) {
				c.Settings.Complete.MinFailed, err = parseCount(text)
				return err
			},
		},
		{
			Name: "muster.complete.minSucceeded", Default: "all chief and worker instances", null: true,
			Meaning: "so many succeeded instances end the job; null: no number does",
			component: func(c *Component, _, text string) (err error) {
				c.Settings.Complete.MinSucceeded, err = parseCount(text)
				return err
			},
		},
		{
			Name: "muster.complete.total.minFailed", Default: "none", Global: true,
			Meaning: "so many failed instances of the whole app, services and evaluators left out, fail the job: a " +
				"number, or a share such as 50%",
			app: (*AppSettings).setTotalFailed,
		},
		{
			Name: "muster.complete.total.minSucceeded", Default: "none", Global: true,
			Meaning: "so many succeeded instances of the whole app, services and evaluators left out, end the job; " +
				"0: no number does",
			app: func(s *AppSettings, text string) (err error) {
				s.Total.MinSucceeded, err = atLeast(0, text)
				return err
			},
		},
		{
			Name: "muster.stop.signal", Default: "TERM", Meaning: "the signal that asks a process to end",
			component: func(c *Component, _, text string) (err error) {
				c.Settings.Stop.Signal, err = wantSignal(text)
				return err
			},
		},
		{
			Name: "muster.stop.grace", Default: "the kill window less 2 s, at most 30 s",
			Meaning:   "how long it may take to end before it is killed",
			component: func(c *Component, _, text string) error { return setLimit(&c.Settings.Stop.Grace, text) },
		},
	}
}

func checkpointKeys() []Key {
	return []Key{
		{
			Name: "muster.checkpoint.dir", Default: "a folder that the app's instances share",
			Meaning:   "where the app saves itself: a folder or a store's URL",
			component: func(c *Component, _, text string) error { return setText(&c.Settings.Checkpoint.Dir, text) },
		},
		{
			Name: "muster.checkpoint.pattern", Default: "that of the framework",
			Meaning: "the file names of a checkpoint, as a glob",
			component: func(c *Component, _, text string) error {
				c.Settings.Checkpoint.Pattern = text
				if text == "" || !globOK(text) {
					return wanted{want: "a glob such as ckpt-*.json"}
				}
				return nil
			},
		},
		{
			Name: "muster.checkpoint.reach", Default: "auto", Values: []string{"auto", "process", "muster"},
			Meaning: "who reaches a muster.checkpoint.dir in a store: process, which is told the URL; muster, with " +
				"a local folder in between; auto: TensorFlow where there is a libhdfs, else muster",
			component: func(c *Component, _, text string) error { return setReach(&c.Settings.Checkpoint, text) },
		},
		{
			Name: "muster.checkpoint.whole",
			Meaning: "when a match of the pattern counts: words with blanks between them, files=GLOB (in a folder), " +
				"size=BYTES, steady=DURATION",
			component: func(c *Component, _, text string) error {
				c.Settings.Checkpoint.Whole = text
				return checkWhole(text)
			},
		},
		{
			Name: "muster.checkpoint.marker",
			Meaning: "the file that says that a checkpoint is whole: its name in a folder, what follows a file's " +
				"name, or a path with {} for the match",
			component: func(c *Component, _, text string) error {
				c.Settings.Checkpoint.Marker = text
				return checkMarker(text)
			},
		},
		{
			Name: "muster.checkpoint.sync",
			Meaning: "the store's URL to which each whole checkpoint is copied, and from which it comes back on " +
				"another host",
			component: func(c *Component, _, text string) error { return setText(&c.Settings.Checkpoint.Sync, text) },
		},
		{
			Name: "muster.checkpoint.keep", Default: "all",
			Meaning: "how many checkpoints each instance keeps in the store; 0: all",
			component: func(c *Component, _, text string) (err error) {
				c.Settings.Checkpoint.Keep, err = atLeast(0, text)
				return err
			},
		},
		{
			Name: "muster.checkpoint.signal",
			Meaning: "the signal that asks the app to save itself before a planned stop; a newer checkpoint is " +
				"waited for within the grace",
			component: func(c *Component, _, text string) (err error) {
				c.Settings.Checkpoint.Signal, err = wantSignal(text)
				return err
			},
		},
		{
			Name: "muster.checkpoint.ranks", Default: "auto", Values: []string{"auto", "all", "some", "each"},
			Meaning: "what a gang goes on from: the newest step that all have; some: of those who have ever stored " +
				"one; each: from its own newest; auto: all where several instances of the component store their own, " +
				"else some",
			component: func(c *Component, _, text string) error { return setRanks(&c.Settings.Checkpoint, text) },
		},
	}
}

func timeKeys() []Key {
	app := func(at func(*AppSettings) *Seconds) func(*AppSettings, string) error {
		return func(s *AppSettings, text string) error { return setDuration(at(s), text) }
	}
	return []Key{
		{
			Name: "muster.barrier.timeout", Default: "30m", Global: true,
			Meaning: "how long the gang may take to be complete",
			app:     func(s *AppSettings, text string) error { return setLimit(&s.Barrier, text) },
		},
		{
			Name: "muster.stage.timeout", Default: "30m", Global: true,
			Meaning: "how long bringing inputs and codeDir may take, and leaving outputs or saving them",
			app:     func(s *AppSettings, text string) error { return setLimit(&s.StageTimeout, text) },
		},
		{
			Name: "muster.timeout", Default: "none", Global: true,
			Meaning: "how long the whole run may take; 0: no limit",
			app:     app(func(s *AppSettings) *Seconds { return &s.Timeout }),
		},
		{
			Name: "muster.duration", Default: "none", Global: true, Meaning: "how long a process may run; 0: no limit",
			app: app(func(s *AppSettings) *Seconds { return &s.Duration }),
		},
		{
			Name: "muster.store", Default: "none", Global: true,
			Meaning: "where muster submit puts what the hosts need of a run: hdfs:, or a folder that all of them see",
			app:     setStore,
		},
		{
			Name: "muster.hold", Idle: true, Instead: "a failed container ends, its logs and its folder stay",
			Default: "0", Meaning: "how long a failed container is kept for inspection",
			component: func(c *Component, _, text string) error { return setDuration(&c.Settings.Hold, text) },
		},
	}
}

func processKeys() []Key {
	return []Key{
		{
			Name: "muster.command", Default: "metainfo's commands, then its commandScript",
			Meaning:   "the shell text to run",
			component: func(c *Component, _, text string) error { return setText(&c.Settings.Command, text) },
		},
		{
			Name: startKey, Default: "script where the package has one, else builtin",
			Meaning: "what START runs where muster.command does not say: the package's own script, or the " +
				"framework's built-in command: script, builtin",
			Values: []string{StartScript, StartBuiltin},
			component: func(c *Component, _, text string) error {
				c.Settings.Start = text
				if text != StartScript && text != StartBuiltin {
					return wanted{
						want: StartScript + " or " + StartBuiltin,
						hint: didYouMean(text, []string{StartScript, StartBuiltin}),
					}
				}
				return nil
			},
		},
		{
			Name: "muster.status.interval", Default: "5s", Meaning: "how often the script's STATUS is asked; 0: never",
			component: func(c *Component, _, text string) error {
				return setDuration(&c.Settings.StatusInterval, text)
			},
		},
		{
			Name: "muster.resume.args",
			Meaning: "appended to the command, or filled in where it says {{checkpoint}}, {{checkpoint.step}}, " +
				"{{checkpoint.dir}}, once there is a whole checkpoint",
			component: func(c *Component, _, text string) error {
				c.Settings.ResumeArgs = text
				return nil
			},
		},
		{
			Name: "muster.nproc", Default: "1",
			Meaning: "how many processes each container of a chief or worker runs, each told its own rank",
			component: func(c *Component, _, text string) (err error) {
				c.Settings.Processes, err = atLeast(1, text)
				return err
			},
		},
		{
			Name: "muster.side.*",
			Meaning: "muster.side.NAME: the shell text of a process beside the main one, supervised and of no " +
				"weight in the verdict; NAME.index: the one instance it runs beside; NAME.port=true: it is given a " +
				"port, MUSTER_PORT_SIDE_NAME; NAME.restart=false: once is enough",
			component: (*Component).setSide,
		},
		{
			Name: "muster.ports.exact", Default: "false", Values: []string{"true", "false"},
			Meaning: "whether {DEFAULT_n} is that port or none: without it another one is taken where it is not free",
			component: func(c *Component, _, text string) (err error) {
				c.Settings.PortsExact, err = parseBool(text)
				return err
			},
		},
		{
			Name: "muster.env.inherit", Default: "the allow-list", Global: true, Values: []string{InheritHBox},
			Meaning: "hbox: the process gets the variables that HBox's container sets, ours and its own, and none of " +
				"the agent's",
			app: func(s *AppSettings, text string) error {
				s.InheritEnv = text
				if text != InheritHBox {
					return wanted{want: InheritHBox, hint: "for a variable called inherit there is --env"}
				}
				return nil
			},
		},
		{
			Name: "muster.env.*", Meaning: "a variable of the process",
			component: func(c *Component, name, text string) error {
				return setNamed(&c.Settings.Env, name, text, envForm.MatchString(name),
					"a variable's name after muster.env.")
			},
		},
		{
			Name:      "muster.secret.*",
			Meaning:   "a secret variable of the process, by reference: file:PATH, env:NAME, keyring:NAME",
			component: (*Component).setSecret,
		},
		{
			Name: "muster.python", Default: "python3",
			Meaning: "the Python that runs scripts and the built-in TensorFlow command; set, it is also told, as " +
				"MUSTER_PYTHON",
			component: func(c *Component, _, text string) error { return setText(&c.Settings.Python, text) },
		},
		{
			Name: "muster.tensorflow.mode", Default: "between-graph", Global: true,
			Values: []string{"between-graph", inGraph},
			Meaning: "between-graph: every worker runs the script; in-graph: the chief, or the first worker, runs " +
				"it, and all others a server that ends with the job",
			app: (*AppSettings).setTensorFlowMode,
		},
		{
			Name: "muster.tensorflow.args",
			Default: "--ps_hosts --worker_hosts --job_name --task_index --ckp_dir --work_dir, and --data_dir with " +
				"user.data.dir",
			Meaning: "the arguments of the built-in TensorFlow command, instead of its own list",
			component: func(c *Component, _, text string) error {
				c.Settings.TFArgs = &text
				return nil
			},
		},
	}
}

func limitKeys() []Key {
	whole := func(at func(*Limits) *int, least int) func(*Component, string, string) error {
		return func(c *Component, _, text string) (err error) { *at(&c.Limits), err = atLeast(least, text); return err }
	}
	yes := func(at func(*Limits) *bool) func(*Component, string, string) error {
		return func(c *Component, _, text string) (err error) { *at(&c.Limits), err = parseBool(text); return err }
	}
	return []Key{
		{
			Name: gpuKey, Default: "0", Limit: true, Meaning: "how many GPUs",
			component: whole(func(l *Limits) *int { return &l.GPUs }, 0),
		},
		{
			Name: "muster.gpu.type", Limit: true,
			Meaning:   "the GPU's model; letter case, blanks, dashes and the words NVIDIA, Tesla, GeForce are ignored",
			component: func(c *Component, _, text string) error { return setText(&c.Limits.GPUType, text) },
		},
		{
			Name: "muster.gpu.memory", Limit: true, Meaning: "GPU memory that one process may use, MB",
			component: whole(func(l *Limits) *int { return &l.GPUMemory }, 1),
		},
		{
			Name: "muster.image", Limit: true, Default: "host",
			Meaning: "an OCI reference, oci:DIR, or host: the host's root, also in place of the image that a job " +
				"file names",
			component: func(c *Component, _, text string) error {
				err := setText(&c.Limits.Image, text)
				if text == HostRoot {
					c.Limits.Image = ""
				}
				return err
			},
		},
		{
			Name: "muster.image.auth", Limit: true,
			Meaning: "credentials for the image's registry, by reference: file:PATH, env:NAME, keyring:NAME",
			component: func(c *Component, _, text string) error {
				if !secretForm.MatchString(text) {
					return wanted{
						got: "a literal value", want: "file:PATH, env:NAME or keyring:NAME",
						hint: "a definition holds no secrets",
					}
				}
				c.Limits.ImageAuth = text
				return nil
			},
		},
		{
			Name: "muster.user", Limit: true, Default: "the agent's own user",
			Meaning: "user and group of the process, uid:gid",
			component: func(c *Component, _, text string) error {
				c.Limits.User = text
				if !userForm.MatchString(text) && len(Placeholders(text)) == 0 {
					return wanted{want: "a user, or user:group"}
				}
				return nil
			},
		},
		{
			Name: "muster.shm", Default: "half of the memory", Limit: true, Meaning: "size of /dev/shm, MB",
			component: whole(func(l *Limits) *int { return &l.ShmMB }, 1),
		},
		{
			Name: "muster.pids", Default: "no limit", Limit: true, Meaning: "processes and threads; 0: no limit",
			component: whole(func(l *Limits) *int { return &l.Pids }, 0),
		},
		{
			Name: "muster.cpu.hard", Default: "false", Limit: true, Values: []string{"true", "false"},
			Meaning:   "whether yarn.vcores is a ceiling and not only a share",
			component: yes(func(l *Limits) *bool { return &l.CPUHard }),
		},
		{
			Name: "muster.memory.swap", Default: "0", Limit: true, Meaning: "swap beside the memory, MB",
			component: whole(func(l *Limits) *int { return &l.SwapMB }, 0),
		},
		{
			Name: "muster.memory.high", Limit: true,
			Meaning:   "where the kernel begins to reclaim memory and to slow the app down, MB; cgroup v2 only",
			component: whole(func(l *Limits) *int { return &l.HighMB }, 1),
		},
		{
			Name: "muster.memory.autoscale", Default: "0", Limit: true,
			Meaning: "by how much of itself yarn.memory grows with each restart after it ran out, within what the " +
				"launcher grants: 0.5 is by half",
			component: func(c *Component, _, text string) (err error) {
				c.Limits.Autoscale, err = parseShare(text)
				return err
			},
		},
		{
			Name: "muster.root", Default: rootReadOnly, Limit: true, Values: []string{rootReadOnly, RootOverlay},
			Meaning: "what a container without an image sees of the host's root: read-only, or overlay, whose writes " +
				"are private and end with it",
			component: func(c *Component, _, text string) error {
				c.Limits.Root = text
				if text != rootReadOnly && text != RootOverlay {
					return wanted{want: rootReadOnly + " or " + RootOverlay}
				}
				return nil
			},
		},
		{
			Name: "muster.ulimit.*", Limit: true,
			Meaning:   "a limit of setrlimit(2): soft, or soft:hard; numbers or unlimited",
			component: (*Component).setUlimit,
		},
		{
			Name: "muster.rdma", Default: "false", Limit: true, Values: []string{"true", "false"},
			Meaning:   "/dev/infiniband/* and unlimited memlock",
			component: yes(func(l *Limits) *bool { return &l.RDMA }),
		},
		{
			Name: "muster.spread", Default: "any", Limit: true, Values: []string{"any", "host"},
			Meaning: "host: each instance on a host of its own, as the bit 4 of yarn.component.placement.policy; for " +
				"the launcher",
			component: func(c *Component, _, text string) error {
				switch text {
				case "host":
					c.Limits.Placement |= PlacedApart
				case "any":
				default:
					return wanted{want: "any or host"}
				}
				return nil
			},
		},
	}
}
