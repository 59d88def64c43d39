package gpu

import "slices"

// xids is NVIDIA's catalogue of Xid errors, in our own words, by number. Source: "Xid Errors", "Analyzing Xid Errors
// with the Xid Catalog" (docs.nvidia.com/deploy/xid-errors): Action is its immediate resolution, for GPUs from A100 on;
// Causes are those of its older listing, and for later numbers what the error's nature leaves. Class is what it means
// for us: for actions that send the operator into a workflow or to support, whether the process (RestartApp) or the
// device (ResetGPU) is lost. Numbers that NVIDIA calls unused are here only if older GPUs give them a meaning that
// matters to computing.
var xids = slices.Concat(lowXids, highXids)

// lowXids are those up to 108.
var lowXids = []xid{
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
}
