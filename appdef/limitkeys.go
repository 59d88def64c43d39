package appdef

const gpuKey = "yarn.io/gpu"

// PlacedApart is the bit of Limits.Placement for each instance of a component on a host of its own.
const PlacedApart = 4

// deviceKeys say which GPUs, image and user a process has.
func deviceKeys() []Key {
	return []Key{
		{
			Name: gpuKey, Default: "0", Limit: true,
			Meaning:   "how many GPUs an instance gets; with 0, its processes are told of none",
			component: wholeLimit(func(l *Limits) *int { return &l.GPUs }, 0),
		},
		{
			Name: "muster.gpu.type", Limit: true,
			Meaning: "the GPU's model; letter case, blanks, dashes and the words NVIDIA, Tesla and GeForce are " +
				"ignored",
			component: func(c *Component, _, text string) error { return setText(&c.Limits.GPUType, text) },
		},
		{
			Name: "muster.gpu.memory", Limit: true, Meaning: "GPU memory that one process may use, MB",
			component: wholeLimit(func(l *Limits) *int { return &l.GPUMemory }, 1),
		},
		{
			Name: "muster.image", Limit: true, Default: "host",
			Meaning: "the image of the container: an OCI reference, oci:DIR, or host for the host's own root (also " +
				"in place of the image that a job file names)",
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
			Meaning: "the user and group of the process, uid:gid",
			component: func(c *Component, _, text string) error {
				c.Limits.User = text
				if !userForm.MatchString(text) && len(Placeholders(text)) == 0 {
					return wanted{want: "a user, or user:group"}
				}
				return nil
			},
		},
	}
}

// amountKeys limit memory, cores and processes.
func amountKeys() []Key {
	return []Key{
		{
			Name: "muster.shm", Default: "half of the memory", Limit: true,
			Meaning:   "the size of /dev/shm, MB",
			component: wholeLimit(func(l *Limits) *int { return &l.ShmMB }, 1),
		},
		{
			Name: "muster.storage", Default: "0", Limit: true,
			Meaning: "how much must be free on the file system of the work folder when the instance starts, GB; it " +
				"is no limit for what the process writes",
			component: wholeLimit(func(l *Limits) *int { return &l.StorageGB }, 0),
		},
		{
			Name: "muster.pids", Default: "no limit", Limit: true,
			Meaning:   "how many processes and threads an instance may have; 0: no limit",
			component: wholeLimit(func(l *Limits) *int { return &l.Pids }, 0),
		},
		{
			Name: "muster.cpu.hard", Default: "false", Limit: true, Values: []string{"true", "false"},
			Meaning:   "whether yarn.vcores is a hard limit; if false, it is only a share",
			component: boolLimit(func(l *Limits) *bool { return &l.CPUHard }),
		},
		{
			Name: "muster.memory.swap", Default: "0", Limit: true,
			Meaning:   "swap in addition to the memory, MB",
			component: wholeLimit(func(l *Limits) *int { return &l.SwapMB }, 0),
		},
		{
			Name: "muster.memory.high", Limit: true,
			Meaning: "from how much memory on the kernel reclaims memory and slows the app down, MB; cgroup v2 " +
				"only",
			component: wholeLimit(func(l *Limits) *int { return &l.HighMB }, 1),
		},
		{
			Name: "muster.memory.autoscale", Default: "0", Limit: true,
			Meaning: "the share by which yarn.memory grows with each restart after out of memory, up to what the " +
				"launcher grants; 0.5: by half",
			component: func(c *Component, _, text string) (err error) {
				c.Limits.Autoscale, err = parseShare(text)
				return err
			},
		},
		{
			Name: "muster.memory.autoscale.at", Default: "oom", Limit: true, Values: []string{"oom", AutoscaleRetry},
			Meaning: "when muster.memory.autoscale grows the memory: oom: with a restart after out of memory; retry: " +
				"with any restart of the gang or the instance, as HBox does",
			component: func(c *Component, _, text string) error {
				switch c.Limits.AutoscaleAt = text; text {
				case AutoscaleRetry:
				case "oom":
					c.Limits.AutoscaleAt = ""
				default:
					return wanted{want: "oom, " + AutoscaleRetry}
				}
				return nil
			},
		},
	}
}

// hostKeys say what a process sees of its host, and where it may run.
func hostKeys() []Key {
	return []Key{
		{
			Name: "muster.root", Default: rootReadOnly, Limit: true, Values: []string{rootReadOnly, RootOverlay},
			Meaning: "what a container without an image sees of the host's root: read-only; or overlay, where " +
				"writes are private and discarded at the end (for a root agent only where the policy says " +
				"userns: host)",
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
			Meaning:   "a limit of setrlimit(2): SOFT or SOFT:HARD, each a number or unlimited",
			component: (*Component).setUlimit,
		},
		{
			Name: "muster.rdma", Default: "false", Limit: true, Values: []string{"true", "false"},
			Meaning:   "give access to /dev/infiniband/* and unlimited memlock",
			component: boolLimit(func(l *Limits) *bool { return &l.RDMA }),
		},
		{
			Name: "muster.spread", Default: "any", Limit: true, Values: []string{"any", "host"},
			Meaning: "host: the launcher places each instance on a host of its own, as bit 4 of " +
				"yarn.component.placement.policy does",
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

// wholeLimit stores a whole number, at least the given one.
func wholeLimit(at func(*Limits) *int, least int) func(*Component, string, string) error {
	return func(c *Component, _, text string) (err error) { *at(&c.Limits), err = atLeast(least, text); return err }
}

// boolLimit stores true or false.
func boolLimit(at func(*Limits) *bool) func(*Component, string, string) error {
	return func(c *Component, _, text string) (err error) { *at(&c.Limits), err = parseBool(text); return err }
}
