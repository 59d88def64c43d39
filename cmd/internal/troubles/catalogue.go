package troubles

import (
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/exit"
)

var catalogue = []group{
	{"Command line and definition", []row{
		{
			says:    []string{"unknown flag", "no verb …; muster help lists them"},
			codes:   []int{exit.Usage},
			because: "muster does not know the flag or the verb, often by a slip of the pen.",
			fix: "muster help lists the verbs, muster help VERB the flags of one. Flags of a program stand " +
				"behind --.",
		},
		{
			says:  []string{"no such file or folder, want a folder, an archive, a job file"},
			codes: []int{exit.Definition},
			class: registry.ClassDefinition,
			because: "APP names neither a package nor a job file: the path does not exist below the folder " +
				"where muster was started.",
			fix: "Give the path of the package's folder or of a job file, or catalog:NAME. For a program " +
				"alone: muster run -- COMMAND.",
		},
		{
			says: []string{"got unknown key …, want a key that muster knows"},
			because: "A key of the definition or of --set is misspelt. The key is ignored, so the default " +
				"holds.",
			fix: "Correct the key as the message proposes. doc/settings.md lists all keys; muster explain " +
				"shows each value and its source.",
		},
		{
			says:  []string{"… has no ssh server: muster.ssh was not true when it was started"},
			codes: []int{exit.Usage},
			because: "The app was started without muster.ssh=true, or its host's policy has ssh: false, of which " +
				"muster status shows a warning.",
			fix: "Start it with --set muster.ssh=true. muster exec needs no server.",
		},
		{
			says:  []string{"Who asks is not known here: a token, or the proxy's word, is missing or wrong."},
			heard: []string{"the server does not answer; this is what it said last"},
			because: "The page's link was used, its token is not in the file of --tokens or that file is bad, or " +
				"muster ui has ended: that of muster run --ui ends with its run.",
			fix: "Open the newest link that muster ui has printed, and look at its stderr; start muster ui again " +
				"if it has ended.",
		},
		{
			says:    []string{"got …, want JSON"},
			codes:   []int{exit.Definition},
			class:   registry.ClassDefinition,
			because: "The file is no valid JSON: a comma too many or too few, a missing quote, a comment.",
			fix: "Mend the line and column that the message names; muster validate APP checks again " +
				"without running anything.",
		},
		{
			says:    []string{"got …, want a whole number", "got … MB, want at least … MB"},
			codes:   []int{exit.Definition},
			class:   registry.ClassDefinition,
			because: "A value has the wrong type or is out of its range; memory is a number of MB.",
			fix: "Write what the message wants at the place that it names; doc/settings.md has the type of " +
				"each key.",
		},
		{
			says: []string{
				"definition differs: this agent has digest …, the app runs …: another package, --set or --template",
			},
			codes:   []int{exit.Definition},
			because: "An agent brought another definition than the one that the run was founded with.",
			fix: "Start all agents of a run with the same package and the same --set and --template; " +
				"muster plan shows what this agent has. For a changed definition stop the run and begin a " +
				"new one.",
		},
		{
			says:  []string{"times differ: this agent has"},
			codes: []int{exit.Usage},
			because: "An agent was given other times (--session-ttl and the like) than its run's agents, or is " +
				"another build.",
			fix: "Give all agents of a run the same times, and install the same muster on all hosts.",
		},
		{
			says:    []string{"this muster speaks protocol …, run … has"},
			codes:   []int{exit.Definition},
			because: "The host has a muster that cannot be mixed with that of the run's other agents.",
			fix: "Install the muster of the other agents on this host, or begin a new run when this one is " +
				"over (doc/upgrade.md).",
		},
		{
			says:    []string{"the app has no component", "the app has … of"},
			codes:   []int{exit.Usage},
			because: "The index or the component that an agent asks for is not in the definition.",
			fix: "Launch as many agents as the app has instances, or raise the count with muster flex or " +
				"yarn.component.instances.",
		},
		{
			says:    []string{"commandOrders: … wait for each other to have started"},
			codes:   []int{exit.Definition},
			class:   registry.ClassDefinition,
			because: "The commandOrders of metainfo are a circle.",
			fix:     "Remove one order of the circle; muster validate APP names it.",
		},
		{
			says:  []string{"outputs of … are not at their place, and there is no _SUCCESS"},
			codes: []int{exit.Registry},
			because: "The training succeeded, but an agent could not give its outputs their final names in the " +
				"store.",
			fix: "Read the cause in agent.log, mend the store, then start muster agent with the same " +
				"--app-id and --run: it only finishes this.",
		},
	}},
	{"Program", []row{
		{
			says:  []string{"… exited with 1"},
			codes: []int{1},
			class: registry.ClassApp,
			because: "The program ended itself with 1. Muster does not know why: the reason is in the " +
				"program's last lines.",
			fix: "Read the lines that muster run prints below the verdict, or muster logs APP/INSTANCE " +
				"--stderr --tail 50, and mend the program. Code 1 alone, without a verdict, is a failure " +
				"of muster that the message before it explains.",
		},
		{
			says:  []string{"a command was found that may not be executed", "… exited with 126"},
			heard: []string{": Permission denied"},
			codes: []int{126},
			class: registry.ClassApp,
			because: "The file is there but is not executable, or a folder or file is closed to the user that " +
				"the program runs as.",
			fix: "chmod +x FILE, or name its interpreter (python train.py). For data: open it to " +
				"the user; muster exec INSTANCE -- id says which one that is while another instance runs.",
		},
		{
			says:  []string{"a command or a shared library was not found", "… exited with 127"},
			heard: []string{": not found", "error while loading shared libraries"},
			codes: []int{127},
			class: registry.ClassApp,
			because: "The command, or a library of it, is not in the container, or is not on the PATH there. A " +
				"container has a /tmp and a /run of its own, and the process is another user than root: a " +
				"Python environment in /tmp or below /root is not found there.",
			fix: "Install the program where all may read (/opt), on that host or in the image, and write its " +
				"full path. While it runs, look from inside: muster exec INSTANCE -- which COMMAND.",
		},
		{
			says: []string{
				"…: no such file in …: name it by its path from here, or give the --dir that it is in",
				"…: want a program that is there and may be executed", "…: no program of this name in PATH, …",
			},
			because: "The command line names a script or a program that is not on this host.",
			fix: "Look at the name, and cd to the folder that it is below. With --image the names are the " +
				"image's own.",
		},
		{
			says: []string{
				"… is not seen by a process in a container: …",
				"note: … is … for a process in a container, not …",
			},
			because: "A container has a /tmp and a /run of its own, and its process is another user than root, to " +
				"whom /root is closed: this shell finds a program that the process does not.",
			fix: "Install the program where all may read, such as /opt, or take an --image.",
		},
		{
			heard: []string{"can't open file", "No such file or directory"},
			codes: []int{2},
			class: registry.ClassApp,
			because: "The program names a file that is not in its folder. An instance begins in a folder of " +
				"its own, not in yours.",
			fix: "Bring the file with --file FILE or --dir DIR of muster run (or muster.file.NAME of a " +
				"package), or write its full path on a disk that all hosts share. The line brings: of " +
				"muster run says what is brought.",
		},
		{
			heard: []string{"No module named"},
			codes: []int{1},
			class: registry.ClassApp,
			because: "The Python that ran the script lacks the module: often the host's python3 in place of " +
				"that of a virtual environment.",
			fix: "Name the interpreter that has it (muster run -- /path/to/venv/bin/python train.py), or " +
				"give an image that has it (--image). A module of your own: bring it with --file or " +
				"--dir.",
		},
		{
			heard: []string{
				"CUDA out of memory", "CUDA_ERROR_OUT_OF_MEMORY", "cudaErrorMemoryAllocation",
				"OOM when allocating tensor", "ran out of memory trying to allocate",
			},
			class: registry.ClassApp,
			because: "The memory of a GPU did not suffice: the batch or the model is too large, or another " +
				"process is on the GPU. A process of TensorFlow takes all memory of its GPUs by default.",
			fix: "Make the batch smaller. muster top APP shows what each instance has of it, nvidia-smi who " +
				"else is on the GPU. For TensorFlow set muster.env.TF_FORCE_GPU_ALLOW_GROWTH=true, for PyTorch " +
				"muster.env.PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True.",
		},
		{
			heard: []string{
				"Loaded runtime CuDNN library", "CUDNN_STATUS_VERSION_MISMATCH",
				"CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH", "libcudnn.so",
				"libcudart.so", "libcublas.so", "CUDA driver version is insufficient",
				"no kernel image is available for execution",
			},
			class: registry.ClassApp,
			because: "The framework was built for another CUDA or cuDNN than it has found, or finds none: the " +
				"wrong one stands first in LD_LIBRARY_PATH, or the host's driver is older than the program's CUDA.",
			fix: "Bring the CUDA and cuDNN that the framework's own table of versions names, as an image " +
				"(--image), or as an archive (HBox: --cacheArchive cuda-cudnn.tgz#cuda) with " +
				"muster.env.LD_LIBRARY_PATH=cuda/lib64. muster doctor says the driver's version, nvidia-smi " +
				"the newest CUDA that it takes.",
		},
		{
			heard: []string{"CUDNN_STATUS_NOT_INITIALIZED"},
			class: registry.ClassApp,
			because: "cuDNN did not start on the GPU. Commonly the GPU's memory is taken, by the program itself or " +
				"by another process: one of TensorFlow takes all of it by default. Else the framework was built for " +
				"another cuDNN, or a newer driver, than it has found.",
			fix: "Look at nvidia-smi for who else is on the GPU, at muster top APP for what each instance has of it. " +
				"Make the batch smaller, and for TensorFlow set muster.env.TF_FORCE_GPU_ALLOW_GROWTH=true. Where " +
				"memory is free, bring the cuDNN that the framework's own table of versions names, as an image " +
				"(--image) or an archive (HBox: --cacheArchive).",
		},
		{
			says:  []string{"… was killed by", "killed by …"},
			codes: []int{128, 134, 136, 137, 139},
			class: registry.ClassApp,
			because: "A signal ended the program. SIGSEGV and SIGABRT are faults in it or in a native library; " +
				"SIGKILL was sent by a person, a launcher or the kernel.",
			fix: "SIGSEGV, SIGABRT: read its last lines, then compare versions of the libraries. SIGKILL " +
				"without out of memory in the verdict: look into the launcher's events and dmesg of that " +
				"host.",
		},
		{
			says: []string{"… after … restart…"},
			because: "The instance failed more often than muster.restart.budget allows, so that no restart is " +
				"left.",
			fix: "Mend the first failure (its words stand in the verdict); raise muster.restart.budget " +
				"only for failures that pass by themselves.",
		},
		{
			says:    []string{"; … instances of … have failed", "; … of … instances have failed"},
			because: "As many instances have failed as the app tolerates (minFailed or the share).",
			fix:     "Read the first failure, which the verdict names; the others are often its consequences.",
		},
		{
			says: []string{"… failed: …", "did not start: …"},
			because: "The instance failed before its program ran, or without an exit code; what follows the " +
				"colon says why.",
			fix: "Search for the words behind the colon here, and read agent.log of that instance: muster " +
				"logs APP/INSTANCE --agent.",
		},
		{
			says:    []string{"… failed (…)", "never ran"},
			because: "The instance failed and left no word but its class.",
			fix: "Read agent.log of that instance on its host: muster logs APP/INSTANCE --agent; then see " +
				"the class here.",
		},
		{
			says: []string{"no file in … is a checkpoint by"},
			because: "The program writes its checkpoints under names that muster does not know: its progress is not " +
				"seen, and a restart begins anew.",
			fix: "Set muster.checkpoint.pattern to the glob that the message proposes, which must end with the step " +
				"(doc/checkpoints.md).",
		},
		{
			says: []string{"the process has saved … in its own folder, which no other instance sees"},
			because: "The program saves its checkpoints to a relative path. Each process works in a folder of its " +
				"own: neither the other instances nor its own next start find them.",
			fix: "Have the program save to, and load from, the folder that the variable MUSTER_CHECKPOINT_DIR names " +
				"(doc/pytorch.md).",
		},
		{
			says:  []string{"START had ended with 0, and what it had left behind was ended"},
			class: registry.ClassApp,
			because: "The package's START script ended and its daemon was not recognised: no pid file, or " +
				"STATUS says no.",
			fix: "Have START write the daemon's pid file, or run the program in the foreground " +
				"(doc/scripts.md).",
		},
		{
			says:    []string{"… was at work for … and was ended"},
			class:   registry.ClassTimeout,
			because: "A command of the package (INSTALL, START, STOP …) ran longer than its time limit.",
			fix: "See what it waited for in its log in the instance's log folder, or raise the command's " +
				"timeout in metainfo.",
		},
		{
			says:    []string{"not done after … (muster.timeout)"},
			codes:   []int{exit.Timeout},
			class:   registry.ClassTimeout,
			because: "The program did not end within muster.timeout.",
			fix: "If it was still at work, raise muster.timeout: it resumes from its checkpoint. If it " +
				"hung, see muster logs and py-spy by muster exec.",
		},
		{
			says:  []string{"still running after … (muster.duration)"},
			codes: []int{exit.Timeout},
			class: registry.ClassTimeout,
			because: "The job has a fixed duration (muster.duration), and the program did not end within its " +
				"grace after that.",
			fix: "Have the program end on SIGTERM, or raise muster.stop.grace or muster.duration.",
		},
	}},
	{"Memory, disk and ports", []row{
		{
			says: []string{
				"… ran out of memory",
				"out of memory",
				"killed at the limit of … MB",
				"… processes killed at the limit of … MB",
			},
			class: registry.ClassOOM,
			because: "The processes of the instance together needed more than yarn.memory; the kernel killed " +
				"one of them.",
			fix: "Raise yarn.memory (--memory MB of muster run), let it grow with muster.memory.autoscale, " +
				"or make the program use less: smaller batches, fewer loader workers. Memory of files in " +
				"/dev/shm and of page cache in use counts too.",
		},
		{
			heard: []string{"no space left on device", "No space left on device"},
			because: "The disk below the folder of the message is full, or has no inodes left: work folder, " +
				"log folder, state folder, the cache of images, or /dev/shm.",
			fix: "df -h FOLDER and df -i FOLDER on that host; remove what is old (muster forget, work " +
				"folders of jobs that are over, ~/.cache/muster), or give --work-dir on a larger disk. " +
				"For /dev/shm raise muster.shm.",
		},
		{
			says: []string{"output of the process no longer copied", "end of the process's output not copied"},
			because: "The launcher reads the agent's own output too slowly or no longer, so that the copy of the " +
				"program's output there is not complete.",
			fix: "Read the whole in the log folder of the instance: muster logs APP/INSTANCE. --tee=false leaves the " +
				"copy out.",
		},
		{
			says: []string{"bytes of the process's output are lost"},
			because: "The log disk took no more bytes: the program went on, and this part of its output is " +
				"lost.",
			fix: "Free space on the disk of the work folder, or have the program write less; then look at " +
				"the program's result with care.",
		},
		{
			says:  []string{"no port is free"},
			codes: []int{exit.Registry},
			class: registry.ClassNetwork,
			because: "All ports of --ports (or of slider.allowed.ports) are taken on that host, by other " +
				"programs or other agents.",
			fix: "Widen --ports, choose a range outside net.ipv4.ip_local_port_range, or free a port: ss " +
				"-ltnp says who holds one.",
		},
		{
			says:  []string{"address already in use"},
			heard: []string{"Address already in use"},
			class: registry.ClassNetwork,
			because: "Another program listens at the port that this one wants. Muster tries the " +
				"start again a few times, with other ports of its own; a number in the program's arguments stays.",
			fix: "Take the port from muster: $MUSTER_PORT or ${COMPONENT.ALLOCATED_PORT}, or $MASTER_PORT for " +
				"PyTorch. ss -ltnp on that host says who holds the port.",
		},
	}},
	{"Images and data", []row{
		{
			heard: []string{"Read-only file system", "Errno 30"},
			because: "The program writes beside itself, or elsewhere on the host's root: a container has the host's " +
				"files to read, and its own work folder to write to.",
			fix: "Write below $MUSTER_WORK_DIR, checkpoints to $MUSTER_CHECKPOINT_DIR; name an output for results " +
				"(muster.output.NAME). --engine process has no container.",
		},
		{
			says:    []string{"image …: … not found", "check the name and the tag"},
			codes:   []int{exit.Registry},
			class:   registry.ClassImage,
			because: "The image registry answers, and has no image of that name and tag.",
			fix: "Correct the name or the tag (muster lists tags that are there); push the image first if " +
				"it is your own.",
		},
		{
			says:  []string{"check the registry's name and the network"},
			codes: []int{exit.Registry},
			class: registry.ClassImage,
			because: "The image registry cannot be reached from that host: wrong host name or port, a proxy, " +
				"or the registry is down.",
			fix: "curl https://REGISTRY/v2/ on that host; correct muster.image. An image by digest that is " +
				"in the cache needs no registry.",
		},
		{
			says:    []string{"give a login for … by muster.image.auth"},
			codes:   []int{exit.Registry},
			class:   registry.ClassImage,
			because: "The image registry wants a login, or has no image of that name and does not say so.",
			fix: "Check the name, then muster.image.auth=file:PATH or docker login on that host " +
				"(doc/images.md).",
		},
		{
			says:    []string{"it speaks plain http: give the registry a certificate"},
			codes:   []int{exit.Registry},
			class:   registry.ClassImage,
			because: "The image registry has no TLS, and no policy of this host allows that.",
			fix: "Give the registry a certificate, or have the operator add it to insecure_registries of " +
				"/etc/muster/policy.json.",
		},
		{
			says:  []string{"check that the input or output named in the log is there"},
			codes: []int{exit.Registry},
			class: registry.ClassData,
			because: "An input could not be read or an output could not be written: wrong path, no right, or " +
				"the store is down.",
			fix: "Read the path in the verdict; hdfs dfs -ls or ls it as the job's user; doc/data.md and " +
				"doc/hdfs.md say which rights are needed.",
		},
		{
			says:    []string{"not done after … (muster.stage.timeout)"},
			codes:   []int{exit.Timeout},
			class:   registry.ClassTimeout,
			because: "Bringing the inputs, or leaving the outputs, took longer than muster.stage.timeout.",
			fix:     "Raise muster.stage.timeout, or see in agent.log which file or store is slow.",
		},
	}},
	{"Gang", []row{
		{
			says:  []string{"… of … instances were not ready within …", "never joined"},
			codes: []int{exit.Timeout},
			class: registry.ClassTimeout,
			because: "Fewer agents came than the gang has instances: the launcher had no room for the rest, or " +
				"they failed at their start. never joined means that no agent was seen.",
			fix: "The message names who is missing and how far each came. Look at the launcher's queue and " +
				"events for those that never joined, and at agent.log on the host of the others. Raise " +
				"muster.barrier.timeout where the cluster is only slow.",
		},
		{
			says: []string{"waiting for the gang", "waiting for members that no agent has joined as"},
			because: "The start waits until all instances have an agent and are prepared; missing names those " +
				"that no agent has joined as.",
			fix: "Look whether the launcher has started them: its queue, its events. Nothing is wrong as long as " +
				"they are queued; muster.barrier.timeout bounds the wait.",
		},
		{
			says:    []string{"… was not replaced within …"},
			codes:   []int{exit.Timeout},
			class:   registry.ClassTimeout,
			because: "An instance was lost and the launcher started no other agent for it.",
			fix: "Have the launcher restart agents (doc/launchers.md), or start muster agent by hand; " +
				"raise muster.barrier.timeout if it takes longer.",
		},
		{
			says:    []string{"… was not released within …"},
			codes:   []int{exit.Timeout},
			class:   registry.ClassTimeout,
			because: "A component waits by commandOrders for another that has not started.",
			fix: "See the log of the component that is waited for, which the message names; check " +
				"commandOrders.",
		},
		{
			says:    []string{"… was lost with its agent on …", "its agent died"},
			codes:   []int{exit.Held},
			class:   registry.ClassHost,
			because: "The host of the instance died, was cut off, or its agent was killed.",
			fix: "Launch the app again: it resumes from its checkpoint. If it happens often, look at that " +
				"host: dmesg, the launcher's events, memory.",
		},
		{
			says:  []string{"… left"},
			class: registry.ClassLauncher,
			because: "The launcher ended the agent in good order (a drain, a pre-emption, a scale-down), and " +
				"the app could not go on without it.",
			fix: "Launch the agent again; it costs no restart budget.",
		},
		{
			says:  []string{"… was replaced", "… moved to …", "the roster's row has another address"},
			class: registry.ClassMismatch,
			because: "A new agent took the instance's index, or the instance came back at another address, so " +
				"that the gang must form again.",
			fix: "Nothing: the gang restarts from its checkpoint. If it repeats, see whether two launchers " +
				"start agents of one app.",
		},
		{
			says: []string{"gang restarted after …"},
			because: "An instance failed, and all of the gang restarts from the newest common checkpoint " +
				"(muster.restart=gang or muster.retry).",
			fix: "Nothing while restarts are left; the failure that was first is named behind after.",
		},
		{
			says:  []string{"… is held by pid … on … since …", "another agent holds the index"},
			codes: []int{exit.Held},
			class: registry.ClassHost,
			because: "A living agent has this index. Either it was launched twice, or the host is cut off and " +
				"its agent is not yet given up.",
			fix: "Leave it to the living agent; if it is a leftover, muster stop APP, or end that pid on " +
				"its host.",
		},
		{
			says:    []string{"run … is not finished, run … cannot begin", "… is running already"},
			codes:   []int{exit.Held},
			because: "The app's name has a run whose agents live.",
			fix: "muster status APP shows it; muster stop APP ends it; --app-id NAME starts another app " +
				"beside it.",
		},
		{
			says:    []string{"run … is over: …; --run NAME begins a new one", "run … is over"},
			because: "The run has its verdict, and nothing of it runs again.",
			fix:     "--run NAME (another name than before) begins a new run of the app, from its checkpoints.",
		},
		{
			says:    []string{"folder … is in use…; give --work-dir a folder of this app's own"},
			codes:   []int{exit.Held},
			class:   registry.ClassHost,
			because: "Another agent or another muster run works in the same folder.",
			fix:     "Give --work-dir a folder of its own, or end the other one.",
		},
		{
			says: []string{"peers unreachable", "the agents of these cannot be reached"},
			because: "Agents on other hosts do not answer at the addresses that they published: a firewall, a " +
				"loopback address, another network.",
			fix: "Give their agents --host ADDRESS that other hosts reach, and open --ports in the " +
				"firewall; muster doctor names what is wrong.",
		},
		{
			says:    []string{"check that the addresses named in the log are reachable from that host"},
			codes:   []int{exit.Registry},
			class:   registry.ClassNetwork,
			because: "The program could not reach an address, or its port was taken.",
			fix: "Try the address from that host (nc -vz HOST PORT); set --host of the agents and " +
				"MASTER_ADDR by muster, not by hand.",
		},
		{
			says:  []string{"no app … on this host"},
			codes: []int{exit.Usage},
			because: "This host keeps no record of the app in this state folder: another user, another " +
				"--state-dir, another host, or a slip in the name.",
			fix: "muster ps lists what is there. An app of agents that the launcher or systemd started: " +
				"the same --state-dir as theirs, or --registry ADDRESS.",
		},
	}},
	{"Registry (Consul)", []row{
		{
			says: []string{
				"registry is unreachable",
				"registry does not answer yet, waiting",
				"start Consul there, or give --registry the right address",
			},
			heard: []string{"connection refused"},
			codes: []int{exit.Registry},
			class: registry.ClassRegistry,
			because: "Nothing answers at the address of --registry: Consul does not run, or the address or the " +
				"port is wrong, or a firewall is between.",
			fix: "curl http://HOST:8500/v1/status/leader from this host must print an address. Start " +
				"Consul, or correct --registry; muster doctor looks at it.",
		},
		{
			says:    []string{"no host is called … here: correct --registry"},
			codes:   []int{exit.Registry},
			class:   registry.ClassRegistry,
			because: "The name in --registry cannot be resolved on this host.",
			fix:     "Correct the name, or make it known (DNS, /etc/hosts), or use the IP address.",
		},
		{
			says:  []string{"registry unreachable, process continues", "what runs goes on meanwhile"},
			class: registry.ClassRegistry,
			because: "Consul stopped answering while the program runs. The program goes on; if peers still " +
				"reach Consul, this host's instance stops in time.",
			fix: "Start Consul again; nothing of the job needs a restart if it is back in time. " +
				"doc/protocol.md has the times.",
		},
		{
			says:  []string{"cut off from the registry", "ended by the guard's dead-man timer"},
			class: registry.ClassRegistry,
			because: "This host alone lost the registry, so its process was ended before another agent may " +
				"take its place.",
			fix: "Mend the network between this host and Consul. The gang restarts from its last common " +
				"step, and no budget is charged.",
		},
		{
			says: []string{
				"registry forbids it",
				"give CONSUL_HTTP_TOKEN a token with the rules that muster acl … prints",
				"… answers, and its token … may not write the keys of app …",
				"… answers, and its token … may not make sessions",
				"… answers, and its token … has neither a policy nor a role",
			},
			heard: []string{"Permission denied: token", "lacks permission 'key:", "ACL not found"},
			codes: []int{exit.Forbidden},
			class: registry.ClassNotPermitted,
			because: "Consul refuses the token: there is none, it is unknown, or its rules are for another " +
				"app's keys. AccessorID 00000000-…-000000000002 is the anonymous token: none was given.",
			fix: "muster acl APP prints the rules; consul acl policy create and consul acl token create " +
				"make a token of them; give it as CONSUL_HTTP_TOKEN, or in the file that " +
				"CONSUL_HTTP_TOKEN_FILE names, to every agent and to every verb that asks.",
		},
		{
			says: []string{
				"registry refuses the token, process continues",
				"put a valid token into the file that CONSUL_HTTP_TOKEN_FILE",
			},
			class:   registry.ClassNotPermitted,
			because: "The token was deleted or changed while the job runs.",
			fix: "Put a valid token into the file that CONSUL_HTTP_TOKEN_FILE names: agents read it again " +
				"by themselves.",
		},
		{
			says: []string{
				"registry lost its data",
				"… has lost its data; muster adopt … writes it again",
			},
			codes:   []int{exit.Registry},
			class:   registry.ClassRegistry,
			because: "Consul was restored from an older snapshot, or its data was deleted, while agents live.",
			fix:     "muster adopt APP on a host with an agent of it writes the app's records again.",
		},
		{
			says:  []string{"registry cannot take the request"},
			codes: []int{exit.Internal},
			class: registry.ClassMuster,
			because: "Consul refuses a value, mostly for its size (512 KB): an export or a definition that is " +
				"too large.",
			fix: "Make the export smaller, or write it to a file and export its path.",
		},
		{
			says:  []string{"too many connections from this address (429)"},
			codes: []int{exit.Registry},
			class: registry.ClassRegistry,
			because: "Consul's limits.http_max_conns_per_client is smaller than the number of agents on this " +
				"host needs.",
			fix: "Raise limits.http_max_conns_per_client of Consul (200 by default) and reload it.",
		},
	}},
	{"Rights, limits and hosts", []row{
		{
			says: []string{"in use by processes that are no child of this agent"},
			because: "Another agent of the same app and instance runs on this machine where this one does not see " +
				"it, such as in another container; or processes of a killed one are left.",
			fix: "End the processes that the message names, or give one of the two apps another --app-id.",
		},
		{
			says: []string{
				"muster doctor says what this host permits, and what would change it",
				"let the operator",
			},
			codes: []int{exit.Forbidden},
			class: registry.ClassNotPermitted,
			because: "The definition asks for something that this host or its policy does not permit: a mount, " +
				"a user, root, a device.",
			fix: "Change the definition, or have the operator add it to /etc/muster/policy.json; muster " +
				"doctor says what the host permits.",
		},
		{
			heard: []string{"mkdir …: permission denied", "open …: permission denied"},
			codes: []int{1, exit.Forbidden},
			because: "The user that muster runs as, or that the program runs as, may not write or read the " +
				"folder of the message.",
			fix: "Give --work-dir, --state-dir or muster.checkpoint.dir a folder that this user owns, or " +
				"open the folder to this user.",
		},
		{
			says: []string{"… is closed to uid …"},
			because: "The program runs as a user who may not pass through a folder above the one that it needs, " +
				"such as a home of mode 0700.",
			fix: "chmod o+x FOLDER, the one that the message names, or give --work-dir a place that others " +
				"may pass through.",
		},
		{
			says:  []string{"…: an agent that is root writes for a definition only below its work folder"},
			codes: []int{exit.Forbidden},
			class: registry.ClassNotPermitted,
			because: "The definition names a place of the host outside the work folder, where root's rights would " +
				"write for it.",
			fix: "Name a path below the work folder, or have the operator add the place to roots in the " +
				"policy, as the message writes it.",
		},
		{
			says: []string{"variable … belongs to the agent"},
			because: "The definition names a variable of the agent's environment that may hold a secret of the " +
				"agent's own, such as its token.",
			fix: "Give the agent the value as MUSTER_SECRET_NAME and name that, or have the operator add the " +
				"variable to secret_env in the policy.",
		},
		{
			says: []string{"no such field, want …"},
			because: "The host's policy has a field that muster does not know, mostly a misspelt one. It could be a " +
				"restriction, so the policy is refused.",
			fix: "Correct the field at the line that the message names; doc/manual.md has all fields.",
		},
		{
			says:  []string{"--require-limits: engine … does not enforce …"},
			codes: []int{exit.Forbidden},
			class: registry.ClassNotPermitted,
			because: "The host cannot hold a limit that the definition has (no cgroup is delegated), and " +
				"--require-limits insists on it.",
			fix: "Run the agent as root or in a delegated cgroup; muster doctor says what is missing. Or " +
				"leave --require-limits out.",
		},
		{
			says:    []string{"limit is not enforced", "is not enforced: …"},
			because: "The same, without --require-limits: the program runs without that limit.",
			fix:     "Nothing for a test; for a shared host as in the row before.",
		},
		{
			says:    []string{"asks for …, and the agent's hard limit on this host is …"},
			codes:   []int{exit.Definition},
			class:   registry.ClassDefinition,
			because: "muster.ulimit.* asks for more than the agent itself was given.",
			fix: "Ask for no more, or raise the agent's own limit (LimitNOFILE= and the like of its unit, " +
				"limits.conf, the launcher).",
		},
		{
			says:    []string{"… is not on this host: let the operator"},
			codes:   []int{exit.Forbidden},
			class:   registry.ClassNotPermitted,
			because: "A mount names a path that this host does not have.",
			fix:     "Make the path (mount the share) on every host, or leave the mount out.",
		},
		{
			says:  []string{"GPU… asked for: …", "GPU not fit: …"},
			codes: []int{exit.Held},
			class: registry.ClassGPU,
			because: "The host has fewer free GPUs than are asked for, or one of them has a fault; the message " +
				"names each device and why it is not taken.",
			fix: "nvidia-smi on that host: end what holds the device, reset it, or launch on another host " +
				"(doc/gpu.md).",
		},
	}},
	{"End of a run", []row{
		{
			says:    []string{"stopped", "stopped by …"},
			codes:   []int{0, exit.CtrlC},
			class:   registry.ClassStopped,
			because: "A person or a program asked for it: muster stop, kill or Ctrl-C.",
			fix: "Nothing. The same command with the same --app-id and --work-dir begins again from the " +
				"checkpoints.",
		},
		{
			says:  []string{"… from outside", "told to end from outside"},
			codes: []int{exit.CtrlC, exit.Interrupted},
			because: "muster run or an agent was told to end by a signal: by Ctrl-C, a launcher, or a shutdown " +
				"of the host.",
			fix: "Run the command that muster prints: an interrupted run resumes from its checkpoints.",
		},
		{
			says: []string{"resumed from step …", "resumes from step …"},
			because: "The work folder, or muster.checkpoint.dir, has checkpoints of an earlier run, and the run went " +
				"on from the newest. So a second run may be over at once.",
			fix: "Nothing if that was meant. --fresh sets the checkpoints in the work folder aside; --work-dir gives " +
				"the run a folder of its own.",
		},
		{
			says: []string{
				"all … instances of … are done",
				"… ended with 0, … were asked for",
				"… of … instances asked for have ended with 0",
			},
			codes: []int{0},
			because: "The run succeeded. Instances that failed on the way, within what the app tolerates, are " +
				"named behind these words.",
			fix: "Nothing; where instances failed, read their logs if that was not expected.",
		},
		{
			says: []string{
				"the agent of … ended by … without a verdict",
				"all agents ended without a verdict",
			},
			codes:   []int{exit.Internal},
			class:   registry.ClassMuster,
			because: "The agents ended before the run had a verdict: they were killed, or met a fault.",
			fix: "Read the end of each agent.log; search its words here. Killed agents: run the same " +
				"command again, the run resumes.",
		},
	}},
	{"Exit codes", []row{
		{
			codes: []int{exit.Usage},
			because: "The command line is wrong: a flag, a verb, a component, an app or an instance that does " +
				"not exist.",
			fix: "Correct it as the message says; it will not change by trying again.",
		},
		{
			codes: []int{exit.Definition},
			because: "The definition, the package or its signature is wrong, or differs from the one that the " +
				"app runs.",
			fix: "muster validate APP lists all problems with their places.",
		},
		{
			codes: []int{exit.Registry},
			because: "Something that muster must reach did not answer or did not have it: Consul, the image " +
				"registry, the server of the package, an input, a free port.",
			fix: "The message names the address; the class of the verdict (network, data, image) says " +
				"which of them it is.",
		},
		{
			codes:   []int{exit.Internal},
			because: "A fault in muster, or a request that the registry can never take.",
			fix:     "Read agent.log, and report it with that file.",
		},
		{
			codes: []int{exit.Held},
			because: "A host, a GPU or an index is taken or lost. A resource manager should try again, " +
				"elsewhere if it can.",
			fix: "Launch again: the job resumes from its checkpoint.",
		},
		{
			codes:   []int{exit.Timeout},
			because: "Time ran out: the gang did not come together, or the program did not end.",
			fix: "The verdict says what was waited for; look there first, then raise the limit that it " +
				"names.",
		},
		{
			codes:   []int{exit.Forbidden},
			because: "Not permitted: the token, a folder, the host or its policy.",
			fix:     "muster doctor; it will not change by trying again.",
		},
		{
			codes:   []int{93},
			because: "The job failed, but not here: another instance failed first.",
			fix: "Read the verdict (muster status APP): it names the instance that failed first; its exit " +
				"code and log say more.",
		},
		{
			codes: []int{exit.CtrlC, exit.Interrupted},
			because: "A signal ended muster in good order: 130 by Ctrl-C, 143 when no agent of the run is left " +
				"and it has no verdict.",
			fix: "Run the same command again: it resumes.",
		},
		{
			codes:   []int{255},
			because: "muster slider exists and list NAME answer no, as Slider's client does.",
			fix:     "Nothing is wrong; the app does not exist or is not in that state.",
		},
	}},
	{"Classes", []row{
		{
			class:   registry.ClassApp,
			because: "The program failed by itself.",
			fix:     "Read its last lines: muster logs APP/INSTANCE --stderr.",
		},
		{
			class:   registry.ClassOOM,
			because: "The memory limit of an instance was reached.",
			fix:     "Raise yarn.memory, or use muster.memory.autoscale.",
		},
		{
			class:   registry.ClassGPU,
			because: "A GPU is missing, held by others, or faulty.",
			fix:     "Launch again, on another host if the device stays faulty; muster doctor names the fault.",
		},
		{
			class:   registry.ClassHost,
			because: "A host or its agent is gone, or a folder or an index is held.",
			fix:     "Launch again: the job resumes from its checkpoint.",
		},
		{
			class:   registry.ClassNetwork,
			because: "A port is taken or an address is not reached.",
			fix:     "Read which one in the verdict; then ss -ltnp or nc -vz on that host.",
		},
		{
			class:   registry.ClassData,
			because: "An input or an output could not be brought or left.",
			fix:     "Check path and rights in the store as the job's user.",
		},
		{
			class:   registry.ClassImage,
			because: "The image cannot be had.",
			fix:     "Check its name, tag and login.",
		},
		{
			class:   registry.ClassPreempted,
			codes:   []int{exit.Held},
			because: "The launcher took the room for a more important job.",
			fix: "Launch again: the job resumes from its checkpoint. Save within the notice that the " +
				"launcher gives.",
		},
		{
			class:   registry.ClassStopped,
			because: "A person asked for the end.",
			fix:     "Nothing.",
		},
		{
			class:   registry.ClassTimeout,
			because: "A limit of time was passed.",
			fix:     "The verdict names the key of the limit and what was waited for.",
		},
		{
			class:   registry.ClassDefinition,
			codes:   []int{exit.Definition},
			because: "The definition is at fault.",
			fix:     "muster validate APP.",
		},
		{
			class:   registry.ClassNotPermitted,
			codes:   []int{exit.Forbidden},
			because: "This host, its policy or a token does not permit it.",
			fix:     "muster doctor; for tokens muster acl APP.",
		},
		{
			class:   registry.ClassMuster,
			codes:   []int{exit.Internal},
			because: "A fault in muster.",
			fix:     "Report it with agent.log of the instance that the verdict names.",
		},
		{
			class:   registry.ClassLauncher,
			because: "The launcher told an agent to end with SIGTERM.",
			fix:     "See the launcher's events: drain, time limit, pre-emption, scale-down.",
		},
		{
			class:   registry.ClassRegistry,
			because: "An agent lost contact with the registry.",
			fix:     "Look at Consul and the network between; it charges no restart budget.",
		},
		{
			class:   registry.ClassFlex,
			because: "The instance was taken away by muster flex.",
			fix:     "Nothing.",
		},
		{
			class:   registry.ClassMismatch,
			because: "The roster has another address for the instance than its own.",
			fix:     "Nothing: the gang forms again.",
		},
	}},
}
