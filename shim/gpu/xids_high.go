package gpu

// highXids are those from 109 on.
var highXids = []xid{
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
