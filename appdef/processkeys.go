package appdef

import (
	"cmp"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

const (
	startKey = "muster.start"
	upKey    = "muster.up"
)

// commandKeys say what a process runs.
func commandKeys() []Key {
	return []Key{
		{
			Name: "muster.command", Default: "metainfo's commands, then its commandScript",
			Meaning:   "the shell text to run",
			component: func(c *Component, _, text string) error { return setText(&c.Settings.Command, text) },
		},
		{
			Name: startKey, Default: "script where the package has one, else builtin",
			Meaning: "what START runs without muster.command. script: the package's own script; builtin: the " +
				"framework's built-in command",
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
			Name: "muster.status.interval", Default: "5s",
			Meaning: "how often the script's STATUS command runs; 0: never",
			component: func(c *Component, _, text string) error {
				return setDuration(&c.Settings.StatusInterval, text)
			},
		},
		{
			Name: upKey, Default: upAuto,
			Meaning: "what the instance is once START has ended with 0. auto: the processes that START has left, " +
				"else what STATUS says, else START was the program; start: START is the program, and what it left is " +
				"ended; process: the processes that START has left, of which there must be one; status: what STATUS " +
				"says, alone",
			Values: ups(),
			component: func(c *Component, _, text string) error {
				c.Settings.Up = text
				if !slices.Contains(ups(), text) {
					return wanted{want: strings.Join(ups(), ", "), hint: didYouMean(text, ups())}
				}
				return nil
			},
		},
		{
			Name: "muster.resume.args",
			Meaning: "arguments that are appended to the command once there is a complete checkpoint, with " +
				"{{checkpoint}}, {{checkpoint.step}} and {{checkpoint.dir}} filled in. A command that contains one " +
				"of these itself gets no arguments",
			component: func(c *Component, _, text string) error {
				c.Settings.ResumeArgs = text
				return nil
			},
		},
		{
			Name: "muster.nproc", Default: "1",
			Meaning: "how many processes each container of a chief or worker runs; each process has a rank of its " +
				"own",
			component: func(c *Component, _, text string) (err error) {
				c.Settings.Processes, err = atLeast(1, text)
				return err
			},
		},
	}
}

// surroundingKeys say what a process gets beside its command: side processes, ports and variables.
func surroundingKeys() []Key {
	return []Key{
		{
			Name: "muster.side.*",
			Meaning: "muster.side.NAME: the shell text of a process beside the main one; it is supervised, and its " +
				"end does not affect the verdict. NAME.index: the only instance to run beside; NAME.port=true: " +
				"allocate a port, MUSTER_PORT_SIDE_NAME; NAME.http=true: it serves HTTP there, and is started again " +
				"when it does not answer; NAME.key=true: the agent asks for a key at that port, and the process " +
				"listens at 127.0.0.1, MUSTER_PORT_SIDE_NAME_INNER; NAME.restart=false: do not restart it; " +
				"NAME.history: the path or URL where its folder NAME.folder is kept after the run, as HISTORY/APP-ID",
			component: (*Component).setSide,
		},
		{
			Name: "muster.ports.exact", Default: "false", Values: []string{"true", "false"},
			Meaning: "whether the port of {DEFAULT_n} must be n; if false, another port is used if n is taken",
			component: func(c *Component, _, text string) (err error) {
				c.Settings.PortsExact, err = parseBool(text)
				return err
			},
		},
		{
			Name: "muster.ssh", Default: "true for PAI, HBox's VPC and DIGITS", Values: []string{"true", "false"},
			Meaning: "an ssh server for each instance, at a port called ssh: muster ssh APP/INSTANCE logs in as the " +
				"process's user in its container, and so does ssh INSTANCE between containers",
			component: func(c *Component, _, text string) error {
				c.Settings.SSH = text
				_, err := parseBool(text)
				return err
			},
		},
		{
			Name: "muster.env.inherit", Default: "the allow-list", Global: true, Values: []string{InheritHBox},
			Meaning: "hbox: the process gets the variables that HBox's container sets, muster's and its own, and " +
				"none of the agent's",
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
			Name: "muster.secrets.form", Default: secretsBoth, Values: []string{secretsBoth, SecretsFile, SecretsEnv},
			Meaning: "how the process gets its secrets: as files in MUSTER_SECRET_DIR, which is in memory, as " +
				"variables, or both",
			component: (*Component).setSecretForm,
		},
	}
}

// pythonKeys say how scripts in Python and the built-in TensorFlow command run.
func pythonKeys() []Key {
	return []Key{
		{
			Name: "muster.python", Default: "python3",
			Meaning: "the Python that runs scripts and the built-in TensorFlow command; if set, processes also get " +
				"it as MUSTER_PYTHON",
			component: func(c *Component, _, text string) error { return setText(&c.Settings.Python, text) },
		},
		{
			Name: "muster.tensorflow.mode", Default: "between-graph", Global: true,
			Values: []string{"between-graph", inGraph},
			Meaning: "between-graph: every worker runs the script; in-graph: the chief or first worker runs the " +
				"script, all other instances run a server that ends with the job",
			app: (*AppSettings).setTensorFlowMode,
		},
		{
			Name: "muster.tensorflow.args",
			Default: "--ps_hosts --worker_hosts --job_name --task_index --ckp_dir --work_dir, and --data_dir with " +
				"user.data.dir",
			Meaning: "the arguments of the built-in TensorFlow command, in place of the default list",
			component: func(c *Component, _, text string) error {
				c.Settings.TFArgs = &text
				return nil
			},
		},
	}
}

// setSide reads NAME and its fields, such as NAME.index, in whatever order they come.
func (c *Component) setSide(name, text string) error {
	base, field, _ := strings.Cut(name, ".")
	if !ValidName(base) {
		return wanted{got: quote(base), want: "a name of letters, digits and _ ~ - after muster.side., a letter or " +
			"digit first"}
	}
	side := Side{Name: base, Index: EveryIndex, Restart: true}
	at, there := slices.BinarySearchFunc(c.Settings.Sides, base, func(s Side, name string) int {
		return cmp.Compare(s.Name, name)
	})
	if there {
		side = c.Settings.Sides[at]
	}
	var err error
	switch field {
	case "":
		side.Command, err = text, notEmpty(text)
	case "index":
		side.Index, err = atLeast(EveryIndex, text)
	case "port":
		side.Port, err = parseBool(text)
	case "http":
		side.HTTP, err = parseBool(text)
	case "key":
		side.Key, err = parseBool(text)
	case "restart":
		side.Restart, err = parseBool(text)
	case "folder":
		if side.Folder = path.Clean(text); !filepath.IsLocal(text) || side.Folder == "." {
			err = wanted{got: quote(text), want: "a folder below the one where the process starts"}
		}
	case "history":
		side.History, err = text, notEmpty(text)
	default:
		return wanted{got: quote(name), want: base + ", " + base + ".index, " + base + ".port, " + base +
			".http, " + base + ".key, " + base + ".restart, " + base + ".folder or " + base +
			".history after muster.side."}
	}
	if err != nil {
		return err
	}
	c.Settings.Sides = slices.Clone(c.Settings.Sides)
	if there {
		c.Settings.Sides[at] = side
	} else {
		c.Settings.Sides = slices.Insert(c.Settings.Sides, at, side)
	}
	return nil
}

func (s *AppSettings) setTensorFlowMode(text string) error {
	switch text {
	case "between-graph":
		s.TensorFlowMode = ""
	case inGraph:
		s.TensorFlowMode = inGraph
	default:
		return wanted{want: "between-graph or in-graph", hint: didYouMean(text, []string{"between-graph", inGraph})}
	}
	return nil
}

func ups() []string { return []string{upAuto, UpStart, UpProcess, UpStatus} }
