package verdict

// How a row of spec1 is recognised.
const (
	direct     = "issued directly"
	controller = "pod/container reason seen by the controller"
)

// spec1 is OpenPAI's job exit spec of 1.x: src/k8s-job-exit-spec/config/k8s-job-exit-spec.yaml. Rows that a pattern in
// the log recognises stand here as names alone: nobody is classified by them, for their patterns are PAI's own.
func spec1() []Entry {
	return []Entry{
		{Code: 0, Phrase: "Succeeded", Type: "USER_SUCCESS", Behavior: "UNKNOWN", Reaction: "NEVER_RETRY", By: direct},
		{
			Code: -100, Phrase: "ConfigMapExternalDeleted", Type: "PLATFORM_FAILURE", Behavior: "TRANSIENT",
			Reaction: "ALWAYS_RETRY", By: direct,
		},
		{
			Code: -101, Phrase: "PodExternalDeleted", Type: "PLATFORM_FAILURE", Behavior: "TRANSIENT",
			Reaction: "ALWAYS_RETRY", By: direct,
		},
		{
			Code: -110, Phrase: "ConfigMapLocalCacheCreationTimeout", Type: "PLATFORM_FAILURE", Behavior: "TRANSIENT",
			Reaction: "ALWAYS_RETRY", By: direct,
		},
		{
			Code: -111, Phrase: "PodLocalCacheCreationTimeout", Type: "PLATFORM_FAILURE", Behavior: "TRANSIENT",
			Reaction: "ALWAYS_RETRY", By: direct,
		},
		{
			Code: -120, Phrase: "PodCreationTransientError", Type: "PLATFORM_FAILURE", Behavior: "TRANSIENT",
			Reaction: "ALWAYS_RETRY", By: direct,
		},
		{
			Code: -200, Phrase: "PodCreationPermanentError", Type: "USER_FAILURE", Behavior: "PERMANENT",
			Reaction: "NEVER_RETRY", By: direct,
		},
		{
			Code: -210, Phrase: "StopFrameworkRequested", Type: "USER_STOP", Behavior: "PERMANENT",
			Reaction: "NEVER_RETRY", By: direct,
		},
		{
			Code: -220, Phrase: "FrameworkAttemptCompletion", Type: "USER_STOP", Behavior: "PERMANENT",
			Reaction: "NEVER_RETRY", By: direct,
		},
		{
			Code: -230, Phrase: "DeleteTaskRequested", Type: "USER_STOP", Behavior: "PERMANENT",
			Reaction: "NEVER_RETRY",
			By:       direct,
		},
		{
			Code: -300, Phrase: "PodFailedWithoutFailedContainer", Type: "UNKNOWN_FAILURE", Behavior: "UNKNOWN",
			Reaction: "RETRY_TO_MAX", By: direct,
		},
		{
			Code: -310, Phrase: "PodCreationUnknownError", Type: "UNKNOWN_FAILURE", Behavior: "UNKNOWN",
			Reaction: "RETRY_TO_MAX", By: direct,
		},
		{
			Code: -1000, Phrase: "PodEvicted", Type: "PLATFORM_FAILURE", Behavior: "TRANSIENT",
			Reaction: "ALWAYS_RETRY",
			By:       controller,
		},
		{
			Code: -1001, Phrase: "PodNodeLost", Type: "PLATFORM_FAILURE", Behavior: "TRANSIENT",
			Reaction: "ALWAYS_RETRY",
			By:       controller,
		},
		{
			Code: -1002, Phrase: "PodScheduledToInsufficientResourceNode", Type: "PLATFORM_FAILURE",
			Behavior: "TRANSIENT",
			Reaction: "ALWAYS_RETRY", By: controller,
		},
		{
			Code: -1003, Phrase: "PodPreemptedForCriticalPod", Type: "PLATFORM_FAILURE", Behavior: "TRANSIENT",
			Reaction: "ALWAYS_RETRY", By: controller,
		},
		{
			Code: -1004, Phrase: "PodDeadlineExceeded", Type: "USER_STOP", Behavior: "PERMANENT",
			Reaction: "NEVER_RETRY",
			By:       controller,
		},
		{
			Code: -1005, Phrase: "PodNodeAdmissionForbidden", Type: "USER_FAILURE", Behavior: "PERMANENT",
			Reaction: "NEVER_RETRY", By: controller,
		},
		{
			Code: -1006, Phrase: "PodNodeAdmissionUnexpectedError", Type: "PLATFORM_FAILURE", Behavior: "TRANSIENT",
			Reaction: "ALWAYS_RETRY", By: controller,
		},
		{
			Code: -1100, Phrase: "CreateFrameworkPermanentFailed", Type: "USER_FAILURE", Behavior: "PERMANENT",
			Reaction: "NEVER_RETRY", By: direct,
		},
		{
			Code: -1300, Phrase: "InitContainerDockerOOMKilled", Type: "PLATFORM_FAILURE", Behavior: "TRANSIENT",
			Reaction: "ALWAYS_RETRY", By: controller,
		},
		{
			Code: -1200, Phrase: "UserContainerDockerOOMKilled", Type: "USER_FAILURE", Behavior: "PERMANENT",
			Reaction: "NEVER_RETRY", By: controller,
		},
		{
			Code: -1201, Phrase: "ContainerDockerCreationError", Type: "UNKNOWN_FAILURE", Behavior: "UNKNOWN",
			Reaction: "RETRY_TO_MAX", By: controller,
		},
		{
			Code: -1202, Phrase: "ContainerDockerStartCmdPermissionDenied", Type: "PLATFORM_FAILURE",
			Behavior: "PERMANENT", Reaction: "NEVER_RETRY", By: controller,
		},
		{
			Code: -1203, Phrase: "ContainerDockerStartCmdNotFound", Type: "PLATFORM_FAILURE", Behavior: "PERMANENT",
			Reaction: "NEVER_RETRY", By: controller,
		},
		{
			Code: -1204, Phrase: "ContainerDockerStartUnknownError", Type: "UNKNOWN_FAILURE", Behavior: "UNKNOWN",
			Reaction: "RETRY_TO_MAX", By: controller,
		},
		{
			Code: -1205, Phrase: "ContainerGpuDeviceNotFoundError", Type: "PLATFORM_FAILURE", Behavior: "TRANSIENT",
			Reaction: "ALWAYS_RETRY", By: controller,
		},
		{
			Code: 128, Phrase: "ContainerMayFailDueToGpuDeviceEccError", Type: "PLATFORM_FAILURE", Behavior: "UNKNOWN",
			Reaction: "RETRY_TO_MAX", By: "nvidia double ECC error seen",
		},
		{
			Code: 130, Phrase: "ContainerSigIntReceived", Type: "PLATFORM_FAILURE", Behavior: "TRANSIENT",
			Reaction: "ALWAYS_RETRY", By: "user exit 130",
		},
		{
			Code: 131, Phrase: "ContainerSigQuitReceived", Type: "PLATFORM_FAILURE", Behavior: "TRANSIENT",
			Reaction: "ALWAYS_RETRY", By: "user exit 131",
		},
		{
			Code: 132, Phrase: "ContainerSigIllReceived", Type: "USER_FAILURE", Behavior: "PERMANENT",
			Reaction: "NEVER_RETRY", By: "user exit 132",
		},
		{
			Code: 134, Phrase: "ContainerSigAbrtReceived", Type: "UNKNOWN_FAILURE", Behavior: "UNKNOWN",
			Reaction: "RETRY_TO_MAX", By: "user exit 134",
		},
		{
			Code: 135, Phrase: "ContainerSigBusReceived", Type: "USER_FAILURE", Behavior: "PERMANENT",
			Reaction: "NEVER_RETRY", By: "user exit 135",
		},
		{
			Code: 136, Phrase: "ContainerSigFpeReceived", Type: "USER_FAILURE", Behavior: "PERMANENT",
			Reaction: "NEVER_RETRY", By: "user exit 136",
		},
		{
			Code: 137, Phrase: "ContainerSigKillReceived", Type: "PLATFORM_FAILURE", Behavior: "TRANSIENT",
			Reaction: "ALWAYS_RETRY", By: "user exit 137",
		},
		{
			Code: 139, Phrase: "ContainerSigSegvReceived", Type: "UNKNOWN_FAILURE", Behavior: "UNKNOWN",
			Reaction: "RETRY_TO_MAX", By: "user exit 139",
		},
		{
			Code: 141, Phrase: "ContainerSigPipeReceived", Type: "USER_FAILURE", Behavior: "PERMANENT",
			Reaction: "NEVER_RETRY", By: "user exit 141",
		},
		{
			Code: 143, Phrase: "ContainerSigTermReceived", Type: "PLATFORM_FAILURE", Behavior: "TRANSIENT",
			Reaction: "ALWAYS_RETRY", By: "user exit 143",
		},
		{
			Code: 220, Phrase: "UserCommandExitWithError", Type: "USER_FAILURE", Behavior: "PERMANENT",
			Reaction: "NEVER_RETRY", By: "user exit 127 + user log pattern",
		},
		{
			Code: 221, Phrase: "ContainerTensorflowOOMKilled", Type: "USER_FAILURE", Behavior: "PERMANENT",
			Reaction: "NEVER_RETRY", By: "user log pattern (2 alternatives)",
		},
		{
			Code: 222, Phrase: "ContainerMPISegvFault", Type: "USER_FAILURE", Behavior: "PERMANENT",
			Reaction: "NEVER_RETRY", By: "user log pattern",
		},
		{
			Code: 223, Phrase: "ContainerCudaUncorrectableECCError", Type: "PLATFORM_FAILURE", Behavior: "TRANSIENT",
			Reaction: "ALWAYS_RETRY", By: "user log pattern",
		},
		{
			Code: 224, Phrase: "ContainerCudaVersionMismatch", Type: "USER_FAILURE", Behavior: "PERMANENT",
			Reaction: "NEVER_RETRY", By: "user log pattern",
		},
		{
			Code: 225, Phrase: "ContainerCudaDnnVersionMismatch", Type: "USER_FAILURE", Behavior: "PERMANENT",
			Reaction: "NEVER_RETRY", By: "user log pattern",
		},
		{
			Code: 226, Phrase: "ContainerCudaOOMKilled", Type: "USER_FAILURE", Behavior: "PERMANENT",
			Reaction: "NEVER_RETRY", By: "user log pattern",
		},
		{
			Code: 228, Phrase: "ContainerIncorrectParameterError", Type: "USER_FAILURE", Behavior: "PERMANENT",
			Reaction: "NEVER_RETRY", By: "user log pattern (5 alternatives)",
		},
		{
			Code: 229, Phrase: "ContainerIncorrectDataModelError", Type: "USER_FAILURE", Behavior: "PERMANENT",
			Reaction: "NEVER_RETRY", By: "user log pattern (13 alternatives)",
		},
		{
			Code: 230, Phrase: "ContainerInvalidSavePath", Type: "USER_FAILURE", Behavior: "PERMANENT",
			Reaction: "NEVER_RETRY", By: "user log pattern",
		},
		{
			Code: 231, Phrase: "ContainerSyntaxError", Type: "USER_FAILURE", Behavior: "PERMANENT",
			Reaction: "NEVER_RETRY", By: "user log pattern (6 alternatives)",
		},
		{
			Code: 232, Phrase: "ContainerImportError", Type: "USER_FAILURE", Behavior: "PERMANENT",
			Reaction: "NEVER_RETRY", By: "user log pattern",
		},
		{
			Code: 233, Phrase: "ContainerIndexOutOfRange", Type: "USER_FAILURE", Behavior: "PERMANENT",
			Reaction: "NEVER_RETRY", By: "user log pattern",
		},
		{
			Code: 234, Phrase: "ContainerSigvFault", Type: "USER_FAILURE", Behavior: "PERMANENT",
			Reaction: "NEVER_RETRY",
			By:       "user log pattern",
		},
		{
			Code: 235, Phrase: "ContainerEngineCoreDump", Type: "USER_FAILURE", Behavior: "PERMANENT",
			Reaction: "NEVER_RETRY", By: "user log pattern",
		},
		{
			Code: 249, Phrase: "PAIRuntimeSSHBarrierTimeout", Type: "PLATFORM_FAILURE", Behavior: "PERMANENT",
			Reaction: "NEVER_RETRY", By: "user exit 10 + runtime log pattern",
		},
		{
			Code: 250, Phrase: "FrameworkBarrierTransientFailed", Type: "PLATFORM_FAILURE", Behavior: "TRANSIENT",
			Reaction: "ALWAYS_RETRY", By: direct,
		},
		{
			Code: 251, Phrase: "JobGangAllocationTimeout", Type: "RESOURCE_ALLOCATION_TIMEOUT",
			Behavior: "TRANSIENT_CONFLICT", Reaction: "ALWAYS_BACKOFF_RETRY", By: direct,
		},
		{
			Code: 252, Phrase: "FrameworkBarrierPermanentFailed", Type: "PLATFORM_FAILURE", Behavior: "PERMANENT",
			Reaction: "NEVER_RETRY", By: direct,
		},
		{
			Code: 253, Phrase: "ContainerPortConflict", Type: "PLATFORM_FAILURE", Behavior: "TRANSIENT",
			Reaction: "ALWAYS_RETRY", By: direct,
		},
		{
			Code: 254, Phrase: "ContainerImageNotExists", Type: "USER_FAILURE", Behavior: "PERMANENT",
			Reaction: "NEVER_RETRY", By: direct,
		},
		{
			Code: 255, Phrase: "PAIRuntimeUnknownFailed", Type: "UNKNOWN_FAILURE", Behavior: "UNKNOWN",
			Reaction: "RETRY_TO_MAX", By: direct,
		},
		{
			Code: -8000, Phrase: "ContainerUndefinedNegativeExitCode", Type: "UNKNOWN_FAILURE", Behavior: "UNKNOWN",
			Reaction: "RETRY_TO_MAX", By: direct,
		},
		{
			Code: 256, Phrase: "PAIRuntimeExitAbnormally", Type: "PLATFORM_FAILURE", Behavior: "UNKNOWN",
			Reaction: "RETRY_TO_MAX", By: direct,
		},
	}
}
