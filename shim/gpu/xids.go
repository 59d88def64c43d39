package gpu

// xids is NVIDIA's catalogue of Xid errors, in our own words, by number. Source: "Xid Errors", "Analyzing Xid Errors
// with the Xid Catalog" (docs.nvidia.com/deploy/xid-errors): Action is its immediate resolution, for GPUs from A100 on;
// Causes are those of its older listing, and for later numbers what the error's nature leaves. Class is what it means
// for us: for actions that send the operator into a workflow or to support, whether the process (RestartApp) or the
// device (ResetGPU) is lost. Numbers that NVIDIA calls unused are here only if older GPUs give them a meaning that
// matters to computing.
var xids = []xid{
	{
		8, "channel idle timeout", "A channel did not become idle in time; the GPU stopped working on it",
		"RESTART_APP", RestartApp,
		[]cause{causeDriver, causeHardware},
	},
	{
		11, "missing hardware for a method", "The stream of commands was invalid or damaged",
		"RESTART_APP", RestartApp,
		[]cause{causeApp, causeDriver},
	},
	{
		13, "graphics engine exception",
		"A kernel broke a rule of the engine: most often an index out of bounds or an illegal instruction",
		"RESTART_APP", RestartApp,
		[]cause{causeApp, causeDriver, causeHardware},
	},
	{14, "fake error", "A test message of the driver", "IGNORE", Ignore, []cause{causeDriver}},
	{
		25, "illegal notify", "The stream of commands held something illegal",
		"RESTART_APP", RestartApp,
		[]cause{causeApp, causeDriver},
	},
	{
		31, "memory page fault",
		"A process touched GPU memory that is not mapped for it; most often a bug of the program or of a library",
		"RESTART_APP", RestartApp,
		[]cause{causeApp, causeDriver},
	},
	{
		32, "push buffer damaged", "The DMA unit that fetches commands found damaged ones",
		"RESTART_APP", RestartApp,
		[]cause{causeDriver, causeHardware},
	},
	{
		37, "unknown firmware method", "The firmware was asked for something that it does not know",
		"IGNORE", Ignore,
		[]cause{causeDriver},
	},
	{
		38, "firmware watchdog", "The context switch firmware did not answer in time",
		"IGNORE", Ignore,
		[]cause{causeDriver},
	},
	{
		39, "copy engine 0 exception", "Copy engine 0 failed in a transfer",
		"RESTART_APP", RestartApp,
		[]cause{causeApp, causeDriver, causeHardware},
	},
	{
		40, "copy engine 1 exception", "Copy engine 1 failed in a transfer",
		"RESTART_APP", RestartApp,
		[]cause{causeApp, causeDriver, causeHardware},
	},
	{
		41, "copy engine 2 exception", "Copy engine 2 failed in a transfer",
		"RESTART_APP", RestartApp,
		[]cause{causeApp, causeDriver, causeHardware},
	},
	{
		43, "channel reset", "A process made a fault in software and its channel was stopped; the GPU itself is well",
		"IGNORE", Ignore,
		[]cause{causeApp},
	},
	{
		44, "fault in a context switch", "The engine failed while it changed from one context to another",
		"IGNORE", Ignore,
		[]cause{causeDriver},
	},
	{
		45, "preemptive removal",
		"The driver took a channel away: its process ended or was killed, or an error reported beside this one struck",
		"WORKFLOW_XID_45", Ignore,
		[]cause{causeApp, causeDriver, causeHardware},
	},
	{
		46, "GPU stopped", "The GPU did not go on within its time",
		"RESET_GPU", ResetGPU,
		[]cause{causeDriver, causeHardware},
	},
	{
		48, "double-bit ECC error", "Memory of the GPU returned data that could not be corrected",
		"WORKFLOW_XID_48", ResetGPU,
		[]cause{causeHardware},
	},
	{
		54, "no auxiliary power", "The power cable of the board is missing or loose",
		"CHECK_MECHANICALS", ResetGPU,
		[]cause{causeHardware},
	},
	{
		56, "display engine error", "The display engine failed; computing does not use it",
		"CONTACT_SUPPORT", Ignore,
		[]cause{causeDriver, causeHardware},
	},
	{
		57, "memory link training failed", "The interface to the GPU's memory could not be set up",
		"CONTACT_SUPPORT", ResetGPU,
		[]cause{causeHardware},
	},
	{
		58, "unstable memory interface", "The interface to the GPU's memory does not work reliably",
		"CONTACT_SUPPORT", ResetGPU,
		[]cause{causeHardware},
	},
	{
		59, "power controller error", "The micro-controller of power management failed (older drivers)",
		"CONTACT_SUPPORT", ResetGPU,
		[]cause{causeDriver},
	},
	{
		60, "video processor exception", "The SEC2 engine failed in its work",
		"RESTART_APP", RestartApp,
		[]cause{causeDriver},
	},
	{
		61, "power controller breakpoint", "The micro-controller of power management stopped at a fault of its own",
		"CONTACT_SUPPORT", ResetGPU,
		[]cause{causeDriver, causeHardware},
	},
	{
		62, "power controller halt", "The micro-controller of power management halted",
		"RESET_GPU", ResetGPU,
		[]cause{causeDriver, causeHardware},
	},
	{
		63, "row remap or page retirement recorded",
		"A bad piece of memory was written down, to be replaced at the next reset",
		"IGNORE", Ignore,
		[]cause{causeHardware},
	},
	{
		64, "row remap or page retirement failed", "A bad piece of memory could not be written down for replacement",
		"RESET_GPU", ResetGPU,
		[]cause{causeHardware},
	},
	{
		65, "video encoder 1 exception", "Video encoder 1 failed in its work",
		"CONTACT_SUPPORT", RestartApp,
		[]cause{causeDriver, causeHardware},
	},
	{
		66, "illegal register access", "The driver used a register that it may not",
		"IGNORE", Ignore,
		[]cause{causeDriver},
	},
	{67, "illegal access", "The firmware refused an access of the driver", "IGNORE", Ignore, []cause{causeDriver}},
	{
		68, "video decoder 0 exception", "Video decoder 0 failed in its work",
		"RESTART_APP", RestartApp,
		[]cause{causeDriver, causeHardware},
	},
	{
		69, "engine class error", "A method was called that the engine's class does not have or allow",
		"RESTART_APP", RestartApp,
		[]cause{causeApp, causeDriver},
	},
	{
		70, "copy engine 3 error", "Copy engine 3 failed, cause unknown",
		"RESTART_APP", RestartApp,
		[]cause{causeDriver, causeHardware},
	},
	{
		71, "copy engine 4 error", "Copy engine 4 failed, cause unknown",
		"RESTART_APP", RestartApp,
		[]cause{causeDriver, causeHardware},
	},
	{
		72, "copy engine 5 error", "Copy engine 5 failed, cause unknown",
		"RESTART_APP", RestartApp,
		[]cause{causeDriver, causeHardware},
	},
	{
		73, "video encoder 2 exception", "Video encoder 2 failed in its work",
		"CONTACT_SUPPORT", RestartApp,
		[]cause{causeDriver, causeHardware},
	},
	{
		74, "NVLink error", "A link to another GPU or to a switch failed",
		"WORKFLOW_NVLINK_ERR", ResetGPU,
		[]cause{causeHardware},
	},
	{
		75, "copy engine 6 error", "Copy engine 6 failed, cause unknown",
		"RESTART_APP", RestartApp,
		[]cause{causeDriver, causeHardware},
	},
	{
		76, "copy engine 7 error", "Copy engine 7 failed, cause unknown",
		"RESTART_APP", RestartApp,
		[]cause{causeDriver, causeHardware},
	},
	{
		77, "copy engine 8 error", "Copy engine 8 failed, cause unknown",
		"RESTART_APP", RestartApp,
		[]cause{causeDriver, causeHardware},
	},
	{78, "vGPU start error", "A virtual GPU could not start", "UPDATE_SWFW", ResetGPU, []cause{causeDriver}},
	{
		79, "fallen off the bus", "The driver can no longer reach the GPU over PCIe",
		"RESTART_BM", ResetGPU,
		[]cause{causeDriver, causeHardware},
	},
	{
		80, "damaged data sent", "The checksum of commands sent to the GPU was wrong",
		"RESTART_APP", RestartApp,
		[]cause{causeDriver, causeHardware},
	},
	{
		82, "JPEG engine 0 error", "JPEG engine 0 failed in its work",
		"RESTART_APP", RestartApp,
		[]cause{causeDriver, causeHardware},
	},
	{
		83, "video decoder 1 error", "Video decoder 1 failed in its work",
		"RESTART_APP", RestartApp,
		[]cause{causeDriver, causeHardware},
	},
	{
		84, "video decoder 2 error", "Video decoder 2 failed in its work",
		"RESTART_APP", RestartApp,
		[]cause{causeDriver, causeHardware},
	},
	{
		85, "copy engine 9 error", "Copy engine 9 failed, cause unknown",
		"RESTART_APP", RestartApp,
		[]cause{causeDriver, causeHardware},
	},
	{
		86, "optical flow exception", "The optical flow engine failed in its work",
		"RESTART_APP", RestartApp,
		[]cause{causeDriver, causeHardware},
	},
	{
		88, "video decoder 3 error", "Video decoder 3 failed in its work",
		"RESTART_APP", RestartApp,
		[]cause{causeDriver, causeHardware},
	},
	{
		89, "video decoder 4 error", "Video decoder 4 failed in its work",
		"RESTART_APP", RestartApp,
		[]cause{causeDriver, causeHardware},
	},
	{
		92, "many single-bit ECC errors", "Memory errors were corrected, but come often",
		"IGNORE", Ignore,
		[]cause{causeHardware},
	},
	{
		93, "InfoROM worn", "The board's small memory has been written to more often than planned",
		"IGNORE", Ignore,
		[]cause{causeDriver},
	},
	{
		94, "contained memory error", "Memory returned bad data to one process, which was ended; others go on",
		"RESTART_APP", RestartApp,
		[]cause{causeHardware},
	},
	{
		95, "uncontained memory error", "Memory returned bad data, and it is not known who has seen it",
		"RESET_GPU", ResetGPU,
		[]cause{causeHardware},
	},
	{
		96, "video decoder 5 error", "Video decoder 5 failed in its work",
		"RESTART_APP", RestartApp,
		[]cause{causeDriver, causeHardware},
	},
	{
		97, "video decoder 6 error", "Video decoder 6 failed in its work",
		"RESTART_APP", RestartApp,
		[]cause{causeDriver, causeHardware},
	},
	{
		98, "video decoder 7 error", "Video decoder 7 failed in its work",
		"RESTART_APP", RestartApp,
		[]cause{causeDriver, causeHardware},
	},
	{
		99, "JPEG engine 1 error", "JPEG engine 1 failed in its work",
		"RESTART_APP", RestartApp,
		[]cause{causeDriver, causeHardware},
	},
	{
		100, "JPEG engine 2 error", "JPEG engine 2 failed in its work",
		"RESTART_APP", RestartApp,
		[]cause{causeDriver, causeHardware},
	},
	{
		101, "JPEG engine 3 error", "JPEG engine 3 failed in its work",
		"RESTART_APP", RestartApp,
		[]cause{causeDriver, causeHardware},
	},
	{
		102, "JPEG engine 4 error", "JPEG engine 4 failed in its work",
		"RESTART_APP", RestartApp,
		[]cause{causeDriver, causeHardware},
	},
	{
		103, "JPEG engine 5 error", "JPEG engine 5 failed in its work",
		"RESTART_APP", RestartApp,
		[]cause{causeDriver, causeHardware},
	},
	{
		104, "JPEG engine 6 error", "JPEG engine 6 failed in its work",
		"RESTART_APP", RestartApp,
		[]cause{causeDriver, causeHardware},
	},
	{
		105, "JPEG engine 7 error", "JPEG engine 7 failed in its work",
		"RESTART_APP", RestartApp,
		[]cause{causeDriver, causeHardware},
	},
	{106, "test message", "A test of the board's management bus", "IGNORE", Ignore, []cause{causeDriver}},
	{107, "silent test message", "A test of the board's management bus", "IGNORE", Ignore, []cause{causeDriver}},
	{
		108, "remote NVLink translation error", "Another GPU asked over NVLink for an address that is not there",
		"IGNORE", Ignore,
		[]cause{causeApp, causeDriver},
	},
	{
		109, "context switch timeout", "The engine did not leave a context in time",
		"RESET_GPU", ResetGPU,
		[]cause{causeDriver, causeHardware},
	},
	{
		110, "security fault", "A security check of the GPU failed; the GPU stops for it",
		"RESET_GPU", ResetGPU,
		[]cause{causeHardware},
	},
	{
		119, "GSP call timeout", "The GPU's system processor did not answer the driver",
		"RESET_GPU", ResetGPU,
		[]cause{causeDriver, causeHardware},
	},
	{120, "GSP error", "The GPU's system processor failed", "RESET_GPU", ResetGPU, []cause{causeDriver, causeHardware}},
	{
		121, "C2C link error", "The link between GPU and CPU was corrected after errors",
		"IGNORE", Ignore,
		[]cause{causeHardware},
	},
	{
		122, "flash read failed", "The board's flash memory could not be read",
		"CONTACT_SUPPORT", Ignore,
		[]cause{causeDriver, causeHardware},
	},
	{
		123, "flash write failed", "The board's flash memory could not be written",
		"CONTACT_SUPPORT", Ignore,
		[]cause{causeDriver, causeHardware},
	},
	{
		124, "flash erase failed", "The board's flash memory could not be erased",
		"CONTACT_SUPPORT", Ignore,
		[]cause{causeDriver, causeHardware},
	},
	{
		125, "InfoROM file system error", "The board's small memory holds damaged files",
		"CONTACT_SUPPORT", Ignore,
		[]cause{causeDriver, causeHardware},
	},
	{
		126, "copy engine 10 error", "Copy engine 10 failed, cause unknown",
		"RESTART_APP", RestartApp,
		[]cause{causeDriver, causeHardware},
	},
	{
		127, "copy engine 11 error", "Copy engine 11 failed, cause unknown",
		"RESTART_APP", RestartApp,
		[]cause{causeDriver, causeHardware},
	},
	{
		128, "copy engine 12 error", "Copy engine 12 failed, cause unknown",
		"RESTART_APP", RestartApp,
		[]cause{causeDriver, causeHardware},
	},
	{
		129, "copy engine 13 error", "Copy engine 13 failed, cause unknown",
		"RESTART_APP", RestartApp,
		[]cause{causeDriver, causeHardware},
	},
	{
		130, "copy engine 14 error", "Copy engine 14 failed, cause unknown",
		"RESTART_APP", RestartApp,
		[]cause{causeDriver, causeHardware},
	},
	{
		131, "copy engine 15 error", "Copy engine 15 failed, cause unknown",
		"RESTART_APP", RestartApp,
		[]cause{causeDriver, causeHardware},
	},
	{
		132, "copy engine 16 error", "Copy engine 16 failed, cause unknown",
		"RESTART_APP", RestartApp,
		[]cause{causeDriver, causeHardware},
	},
	{
		133, "copy engine 17 error", "Copy engine 17 failed, cause unknown",
		"RESTART_APP", RestartApp,
		[]cause{causeDriver, causeHardware},
	},
	{
		134, "copy engine 18 error", "Copy engine 18 failed, cause unknown",
		"RESTART_APP", RestartApp,
		[]cause{causeDriver, causeHardware},
	},
	{
		135, "copy engine 19 error", "Copy engine 19 failed, cause unknown",
		"RESTART_APP", RestartApp,
		[]cause{causeDriver, causeHardware},
	},
	{136, "link training failed", "An NVLink could not be set up", "RESET_GPU", ResetGPU, []cause{causeHardware}},
	{
		137, "NVLink privilege error",
		"A peer reached over NVLink for memory that is not mapped for it: the counterpart of Xid 31",
		"IGNORE", Ignore,
		[]cause{causeApp, causeDriver},
	},
	{
		139, "optical flow 1 error", "Optical flow engine 1 failed in its work",
		"RESTART_APP", RestartApp,
		[]cause{causeDriver, causeHardware},
	},
	{
		140, "unrecovered ECC error", "An uncorrectable memory error was not handled by the units that should",
		"RESET_GPU", ResetGPU,
		[]cause{causeHardware},
	},
	{
		141, "CUDA fast path error", "A shortcut of CUDA failed; the slow path is taken",
		"IGNORE", Ignore,
		[]cause{causeApp, causeDriver},
	},
	{
		142, "video encoder 3 error", "Video encoder 3 failed in its work",
		"CONTACT_SUPPORT", RestartApp,
		[]cause{causeDriver, causeHardware},
	},
	{
		143, "GPU initialisation error", "The GPU could not be initialised",
		"RESET_GPU", ResetGPU,
		[]cause{causeDriver, causeHardware},
	},
	{
		144, "NVLink SAW error",
		"Unit SAW of NVLink 5 reported an error, harmless or fatal by its sub-code; the recovery action says which",
		"WORKFLOW_NVLINK5_ERR", Ignore,
		[]cause{causeDriver, causeHardware},
	},
	{
		145, "NVLink RLW error",
		"Unit RLW of NVLink 5 reported an error, harmless or fatal by its sub-code; the recovery action says which",
		"WORKFLOW_NVLINK5_ERR", Ignore,
		[]cause{causeDriver, causeHardware},
	},
	{
		146, "NVLink TLW error",
		"Unit TLW of NVLink 5 reported an error, harmless or fatal by its sub-code; the recovery action says which",
		"WORKFLOW_NVLINK5_ERR", Ignore,
		[]cause{causeDriver, causeHardware},
	},
	{
		147, "NVLink TREX error",
		"Unit TREX of NVLink 5 reported an error, harmless or fatal by its sub-code; the recovery action says which",
		"WORKFLOW_NVLINK5_ERR", Ignore,
		[]cause{causeDriver, causeHardware},
	},
	{
		148, "NVLink NVLPW_CTRL error",
		"Unit NVLPW_CTRL of NVLink 5 reported an error, harmless or fatal by its sub-code; the recovery action says " +
			"which",
		"WORKFLOW_NVLINK5_ERR", Ignore,
		[]cause{causeDriver, causeHardware},
	},
	{
		149, "NVLink NETIR error",
		"Unit NETIR of NVLink 5 reported an error, harmless or fatal by its sub-code; the recovery action says which",
		"WORKFLOW_NVLINK5_ERR", Ignore,
		[]cause{causeDriver, causeHardware},
	},
	{
		150, "NVLink MSE error",
		"Unit MSE of NVLink 5 reported an error, harmless or fatal by its sub-code; the recovery action says which",
		"WORKFLOW_NVLINK5_ERR", Ignore,
		[]cause{causeDriver, causeHardware},
	},
	{
		151, "key rotation error", "A key of confidential computing could not be changed",
		"RESTART_VM", ResetGPU,
		[]cause{causeDriver},
	},
	{
		152, "DLA memory fault", "The deep learning accelerator touched memory that is not mapped",
		"IGNORE", Ignore,
		[]cause{causeDriver},
	},
	{
		153, "DLA timeout", "The deep learning accelerator did not finish in time",
		"IGNORE", Ignore,
		[]cause{causeDriver},
	},
	{
		154, "recovery action changed", "What the GPU needs to recover has changed, because of another Xid",
		"XID_154", Ignore,
		[]cause{causeDriver, causeHardware},
	},
	{
		155, "NVLink error by software", "Software declared an NVLink broken",
		"RESET_GPU", ResetGPU,
		[]cause{causeDriver},
	},
	{
		156, "resource retired", "A part of the GPU is taken out of use at the next reset",
		"RESET_GPU", ResetGPU,
		[]cause{causeHardware},
	},
	{
		157, "resource retirement failed", "A part of the GPU could not be taken out of use",
		"IGNORE", Ignore,
		[]cause{causeHardware},
	},
	{
		158, "fatal timeout", "The GPU gave up waiting for itself",
		"RESET_GPU", ResetGPU,
		[]cause{causeDriver, causeHardware},
	},
	{
		159, "CHI error", "The link to the CPU returned an error without data",
		"CHECK_UVM", RestartApp,
		[]cause{causeDriver, causeHardware},
	},
	{160, "memory channel retired", "A memory channel is marked for repair", "IGNORE", Ignore, []cause{causeHardware}},
	{
		161, "memory channel retirement failed", "A memory channel could not be marked for repair",
		"IGNORE", Ignore,
		[]cause{causeHardware},
	},
	{
		162, "power smoothing on again", "The circuit that smooths the power draw works again",
		"", Ignore,
		[]cause{causeHardware},
	},
	{
		163, "power smoothing off", "The circuit that smooths the power draw was switched off",
		"", Ignore,
		[]cause{causeHardware},
	},
	{
		164, "power smoothing nearly worn", "The circuit that smooths the power draw nears the end of its life",
		"", Ignore,
		[]cause{causeHardware},
	},
	{
		165, "power smoothing worn", "The circuit that smooths the power draw is at the end of its life",
		"", Ignore,
		[]cause{causeHardware},
	},
	{
		166, "NVLink encryption not ready", "Encrypted traffic came before the link was set up for it",
		"", Ignore,
		[]cause{causeDriver},
	},
	{167, "PCIe fatal timeout", "The host did not answer the GPU over PCIe", "", ResetGPU, []cause{causeHardware}},
	{
		168, "less memory", "Errors in its protected region have cost the GPU a part of its memory",
		"", Ignore,
		[]cause{causeHardware},
	},
	{
		169, "SEC2 halt", "The micro-controller of the SEC2 engine halted",
		"", ResetGPU,
		[]cause{causeDriver, causeHardware},
	},
	{
		170, "NVLink interrupt in confidential mode",
		"A link reported something that confidential computing does not allow to look into",
		"", Ignore,
		[]cause{causeDriver, causeHardware},
	},
	{
		171, "uncorrectable DRAM error", "Says of an Xid 48 that the error was in DRAM",
		"", Ignore,
		[]cause{causeHardware},
	},
	{
		172, "uncorrectable SRAM error", "Says of an Xid 48 that the error was in SRAM",
		"", Ignore,
		[]cause{causeHardware},
	},
}
