package verdict

// spec014 is OpenPAI's job exit spec of 0.14, which 0.5 and QIZHI are judged by as well:
// src/job-exit-spec/config/job-exit-spec.yaml.
func spec014() []Entry {
	return []Entry{
		{
			Code: 0, Phrase: "SUCCEEDED", Issuer: "USER_CONTAINER", Causer: "USER_CONTAINER", Type: "USER_SUCCESS",
			Stage: "COMPLETING", Behavior: "UNKNOWN", Reaction: "NEVER_RETRY",
		},
		{
			Code: 130, Phrase: "CONTAINER_KILLED_BY_SIGINT", Issuer: "PAI_OS", Causer: "PAI_OS",
			Type:  "PLATFORM_FAILURE",
			Stage: "RUNNING", Behavior: "TRANSIENT_NORMAL", Reaction: "ALWAYS_RETRY",
		},
		{
			Code: 132, Phrase: "CONTAINER_KILLED_BY_SIGILL", Issuer: "USER_CONTAINER", Causer: "USER_CONTAINER",
			Type: "USER_FAILURE", Stage: "RUNNING", Behavior: "NON_TRANSIENT", Reaction: "NEVER_RETRY",
		},
		{
			Code: 134, Phrase: "CONTAINER_KILLED_BY_SIGABRT", Issuer: "USER_CONTAINER", Causer: "UNKNOWN",
			Type: "UNKNOWN_FAILURE", Stage: "RUNNING", Behavior: "UNKNOWN", Reaction: "RETRY_TO_MAX",
		},
		{
			Code: 135, Phrase: "CONTAINER_KILLED_BY_SIGBUS", Issuer: "USER_CONTAINER", Causer: "USER_CONTAINER",
			Type: "USER_FAILURE", Stage: "RUNNING", Behavior: "NON_TRANSIENT", Reaction: "NEVER_RETRY",
		},
		{
			Code: 136, Phrase: "CONTAINER_KILLED_BY_SIGFPE", Issuer: "USER_CONTAINER", Causer: "USER_CONTAINER",
			Type: "USER_FAILURE", Stage: "RUNNING", Behavior: "NON_TRANSIENT", Reaction: "NEVER_RETRY",
		},
		{
			Code: 137, Phrase: "CONTAINER_KILLED_BY_SIGKILL", Issuer: "PAI_OS", Causer: "PAI_OS",
			Type:  "PLATFORM_FAILURE",
			Stage: "RUNNING", Behavior: "TRANSIENT_NORMAL", Reaction: "ALWAYS_RETRY",
		},
		{
			Code: 139, Phrase: "CONTAINER_KILLED_BY_SIGSEGV", Issuer: "USER_CONTAINER", Causer: "USER_CONTAINER",
			Type: "USER_FAILURE", Stage: "RUNNING", Behavior: "NON_TRANSIENT", Reaction: "NEVER_RETRY",
		},
		{
			Code: 141, Phrase: "CONTAINER_KILLED_BY_SIGPIPE", Issuer: "USER_CONTAINER", Causer: "USER_CONTAINER",
			Type: "USER_FAILURE", Stage: "RUNNING", Behavior: "NON_TRANSIENT", Reaction: "NEVER_RETRY",
		},
		{
			Code: 143, Phrase: "CONTAINER_KILLED_BY_SIGTERM", Issuer: "PAI_OS", Causer: "PAI_OS",
			Type:  "PLATFORM_FAILURE",
			Stage: "RUNNING", Behavior: "TRANSIENT_NORMAL", Reaction: "ALWAYS_RETRY",
		},
		{
			Code: 154, Phrase: "CONTAINER_EXIT_CODE_FILE_LOST", Issuer: "PAI_YARN", Causer: "PAI_YARN",
			Type: "PLATFORM_FAILURE", Stage: "COMPLETING", Behavior: "TRANSIENT_NORMAL", Reaction: "ALWAYS_RETRY",
		},
		{
			Code: 193, Phrase: "CONTAINER_DOCKER_RUN_FAILED", Issuer: "PAI_RUNTIME", Causer: "PAI_DOCKER",
			Type: "PLATFORM_FAILURE", Stage: "LAUNCHING", Behavior: "TRANSIENT_NORMAL", Reaction: "ALWAYS_RETRY",
		},
		{
			Code: 196, Phrase: "CONTAINER_OOM_KILLED_BY_DOCKER", Issuer: "PAI_RUNTIME", Causer: "USER_CONTAINER",
			Type: "USER_FAILURE", Stage: "RUNNING", Behavior: "NON_TRANSIENT", Reaction: "NEVER_RETRY",
		},
		{
			Code: 198, Phrase: "CONTAINER_OOD_KILLED_BY_DISKCLEANER", Issuer: "PAI_RUNTIME", Causer: "USER_CONTAINER",
			Type: "USER_FAILURE", Stage: "RUNNING", Behavior: "NON_TRANSIENT", Reaction: "NEVER_RETRY",
		},
		{
			Code: 255, Phrase: "CONTAINER_RUNTIME_UNKNOWN_FAILURE", Issuer: "PAI_RUNTIME", Causer: "UNKNOWN",
			Type: "UNKNOWN_FAILURE", Stage: "COMPLETING", Behavior: "UNKNOWN", Reaction: "RETRY_TO_MAX",
		},
		{
			Code: 256, Phrase: "CONTAINER_RUNTIME_EXIT_ABNORMALLY", Issuer: "PAI_RUNTIME", Causer: "PAI_RUNTIME",
			Type: "PLATFORM_FAILURE", Stage: "UNKNOWN", Behavior: "UNKNOWN", Reaction: "RETRY_TO_MAX",
		},
		{
			Code: -7100, Phrase: "CONTAINER_INVALID_EXIT_STATUS", Issuer: "PAI_LAUNCHER", Causer: "PAI_YARN",
			Type: "PLATFORM_FAILURE", Stage: "LAUNCHING", Behavior: "TRANSIENT_NORMAL", Reaction: "ALWAYS_RETRY",
		},
		{
			Code: -7101, Phrase: "CONTAINER_NOT_AVAILABLE_EXIT_STATUS", Issuer: "PAI_LAUNCHER", Causer: "PAI_YARN",
			Type: "PLATFORM_FAILURE", Stage: "LAUNCHING", Behavior: "TRANSIENT_NORMAL", Reaction: "ALWAYS_RETRY",
		},
		{
			Code: -7102, Phrase: "CONTAINER_NODE_DISKS_FAILED", Issuer: "PAI_LAUNCHER", Causer: "PAI_OS",
			Type: "PLATFORM_FAILURE", Stage: "LAUNCHING", Behavior: "TRANSIENT_NORMAL", Reaction: "ALWAYS_RETRY",
		},
		{
			Code: -7103, Phrase: "CONTAINER_PORT_CONFLICT", Issuer: "PAI_LAUNCHER", Causer: "PAI_YARN",
			Type: "PLATFORM_FAILURE", Stage: "LAUNCHING", Behavior: "TRANSIENT_NORMAL", Reaction: "ALWAYS_RETRY",
		},
		{
			Code: -7110, Phrase: "CONTAINER_ABORTED", Issuer: "PAI_LAUNCHER", Causer: "PAI_YARN",
			Type:  "PLATFORM_FAILURE",
			Stage: "UNKNOWN", Behavior: "TRANSIENT_NORMAL", Reaction: "ALWAYS_RETRY",
		},
		{
			Code: -7111, Phrase: "CONTAINER_NODE_LOST", Issuer: "PAI_LAUNCHER", Causer: "PAI_YARN",
			Type: "PLATFORM_FAILURE", Stage: "UNKNOWN", Behavior: "TRANSIENT_NORMAL", Reaction: "ALWAYS_RETRY",
		},
		{
			Code: -7112, Phrase: "CONTAINER_EXPIRED", Issuer: "PAI_LAUNCHER", Causer: "RESOURCE_ALLOCATION_TIMEOUT",
			Type: "RESOURCE_ALLOCATION_TIMEOUT", Stage: "ALLOCATING", Behavior: "TRANSIENT_CONFLICT",
			Reaction: "ALWAYS_BACKOFF_RETRY",
		},
		{
			Code: -7113, Phrase: "CONTAINER_ABORTED_ON_AM_RESTART", Issuer: "PAI_LAUNCHER",
			Causer: "RESOURCE_ALLOCATION_TIMEOUT", Type: "RESOURCE_ALLOCATION_TIMEOUT", Stage: "ALLOCATING",
			Behavior: "TRANSIENT_CONFLICT", Reaction: "ALWAYS_BACKOFF_RETRY",
		},
		{
			Code: -7120, Phrase: "CONTAINER_PREEMPTED", Issuer: "PAI_LAUNCHER", Causer: "PAI_YARN",
			Type: "PLATFORM_FAILURE", Stage: "UNKNOWN", Behavior: "TRANSIENT_NORMAL", Reaction: "ALWAYS_RETRY",
		},
		{
			Code: -7121, Phrase: "CONTAINER_RUNTIME_VIRTUAL_MEMORY_EXCEEDED", Issuer: "PAI_LAUNCHER",
			Causer: "PAI_RUNTIME", Type: "PLATFORM_FAILURE", Stage: "UNKNOWN", Behavior: "NON_TRANSIENT",
			Reaction: "NEVER_RETRY",
		},
		{
			Code: -7122, Phrase: "CONTAINER_RUNTIME_PHYSICAL_MEMORY_EXCEEDED", Issuer: "PAI_LAUNCHER",
			Causer: "PAI_RUNTIME", Type: "PLATFORM_FAILURE", Stage: "UNKNOWN", Behavior: "NON_TRANSIENT",
			Reaction: "NEVER_RETRY",
		},
		{
			Code: -7123, Phrase: "CONTAINER_KILLED_BY_AM", Issuer: "PAI_LAUNCHER", Causer: "PAI_LAUNCHER",
			Type: "PLATFORM_FAILURE", Stage: "UNKNOWN", Behavior: "TRANSIENT_NORMAL", Reaction: "ALWAYS_RETRY",
		},
		{
			Code: -7124, Phrase: "CONTAINER_KILLED_BY_RM", Issuer: "PAI_LAUNCHER", Causer: "PAI_YARN",
			Type: "PLATFORM_FAILURE", Stage: "UNKNOWN", Behavior: "TRANSIENT_NORMAL", Reaction: "ALWAYS_RETRY",
		},
		{
			Code: -7125, Phrase: "CONTAINER_KILLED_ON_APP_COMPLETION", Issuer: "PAI_LAUNCHER", Causer: "PAI_YARN",
			Type: "PLATFORM_FAILURE", Stage: "COMPLETING", Behavior: "TRANSIENT_NORMAL", Reaction: "ALWAYS_RETRY",
		},
		{
			Code: -7126, Phrase: "CONTAINER_EXTERNAL_UTILIZATION_SPIKED", Issuer: "PAI_LAUNCHER", Causer: "PAI_OS",
			Type: "PLATFORM_FAILURE", Stage: "UNKNOWN", Behavior: "TRANSIENT_NORMAL", Reaction: "ALWAYS_RETRY",
		},
		{
			Code: -7150, Phrase: "CONTAINER_NM_LAUNCH_FAILED", Issuer: "PAI_LAUNCHER", Causer: "PAI_YARN",
			Type: "PLATFORM_FAILURE", Stage: "LAUNCHING", Behavior: "TRANSIENT_NORMAL", Reaction: "ALWAYS_RETRY",
		},
		{
			Code: -7151, Phrase: "CONTAINER_RM_RESYNC_LOST", Issuer: "PAI_LAUNCHER", Causer: "PAI_YARN",
			Type: "PLATFORM_FAILURE", Stage: "UNKNOWN", Behavior: "TRANSIENT_NORMAL", Reaction: "ALWAYS_RETRY",
		},
		{
			Code: -7152, Phrase: "CONTAINER_RM_RESYNC_EXCEEDED", Issuer: "PAI_LAUNCHER", Causer: "PAI_YARN",
			Type: "PLATFORM_FAILURE", Stage: "UNKNOWN", Behavior: "NON_TRANSIENT", Reaction: "NEVER_RETRY",
		},
		{
			Code: -7153, Phrase: "CONTAINER_MIGRATE_TASK_REQUESTED", Issuer: "PAI_LAUNCHER", Causer: "USER_RETRY",
			Type: "USER_FAILURE", Stage: "UNKNOWN", Behavior: "TRANSIENT_NORMAL", Reaction: "ALWAYS_RETRY",
		},
		{
			Code: -7154, Phrase: "CONTAINER_AGENT_EXPIRED", Issuer: "PAI_LAUNCHER", Causer: "PAI_OS",
			Type: "PLATFORM_FAILURE", Stage: "UNKNOWN", Behavior: "TRANSIENT_NORMAL", Reaction: "ALWAYS_RETRY",
		},
		{
			Code: -7200, Phrase: "AM_RM_HEARTBEAT_YARN_EXCEPTION", Issuer: "PAI_LAUNCHER", Causer: "USER_SUBMISSION",
			Type: "USER_FAILURE", Stage: "SUBMITTING", Behavior: "NON_TRANSIENT", Reaction: "NEVER_RETRY",
		},
		{
			Code: -7201, Phrase: "AM_RM_HEARTBEAT_IO_EXCEPTION", Issuer: "PAI_LAUNCHER", Causer: "PAI_YARN",
			Type: "PLATFORM_FAILURE", Stage: "UNKNOWN", Behavior: "TRANSIENT_NORMAL", Reaction: "ALWAYS_RETRY",
		},
		{
			Code: -7202, Phrase: "AM_RM_HEARTBEAT_UNKNOWN_EXCEPTION", Issuer: "PAI_LAUNCHER", Causer: "UNKNOWN",
			Type: "PLATFORM_FAILURE", Stage: "UNKNOWN", Behavior: "TRANSIENT_NORMAL", Reaction: "ALWAYS_RETRY",
		},
		{
			Code: -7203, Phrase: "AM_RM_HEARTBEAT_SHUTDOWN_REQUESTED", Issuer: "PAI_LAUNCHER", Causer: "PAI_YARN",
			Type: "PLATFORM_FAILURE", Stage: "UNKNOWN", Behavior: "TRANSIENT_NORMAL", Reaction: "ALWAYS_RETRY",
		},
		{
			Code: -7250, Phrase: "AM_UNKNOWN_EXCEPTION", Issuer: "PAI_LAUNCHER", Causer: "PAI_LAUNCHER",
			Type: "PLATFORM_FAILURE", Stage: "UNKNOWN", Behavior: "TRANSIENT_NORMAL", Reaction: "ALWAYS_RETRY",
		},
		{
			Code: -7251, Phrase: "AM_NON_TRANSIENT_EXCEPTION", Issuer: "PAI_LAUNCHER", Causer: "USER_SUBMISSION",
			Type: "USER_FAILURE", Stage: "SUBMITTING", Behavior: "NON_TRANSIENT", Reaction: "NEVER_RETRY",
		},
		{
			Code: -7252, Phrase: "AM_GANG_ALLOCATION_TIMEOUT", Issuer: "PAI_LAUNCHER",
			Causer: "RESOURCE_ALLOCATION_TIMEOUT", Type: "RESOURCE_ALLOCATION_TIMEOUT", Stage: "ALLOCATING",
			Behavior: "TRANSIENT_CONFLICT", Reaction: "ALWAYS_BACKOFF_RETRY",
		},
		{
			Code: -7300, Phrase: "APP_SUBMISSION_YARN_EXCEPTION", Issuer: "PAI_LAUNCHER", Causer: "USER_SUBMISSION",
			Type: "USER_FAILURE", Stage: "SUBMITTING", Behavior: "NON_TRANSIENT", Reaction: "NEVER_RETRY",
		},
		{
			Code: -7301, Phrase: "APP_SUBMISSION_IO_EXCEPTION", Issuer: "PAI_LAUNCHER", Causer: "PAI_YARN",
			Type: "PLATFORM_FAILURE", Stage: "SUBMITTING", Behavior: "TRANSIENT_NORMAL", Reaction: "ALWAYS_RETRY",
		},
		{
			Code: -7302, Phrase: "APP_SUBMISSION_UNKNOWN_EXCEPTION", Issuer: "PAI_LAUNCHER", Causer: "UNKNOWN",
			Type: "UNKNOWN_FAILURE", Stage: "SUBMITTING", Behavior: "UNKNOWN", Reaction: "RETRY_TO_MAX",
		},
		{
			Code: -7303, Phrase: "APP_KILLED_UNEXPECTEDLY", Issuer: "PAI_LAUNCHER", Causer: "UNKNOWN",
			Type: "PLATFORM_FAILURE", Stage: "UNKNOWN", Behavior: "TRANSIENT_NORMAL", Reaction: "ALWAYS_RETRY",
		},
		{
			Code: -7350, Phrase: "APP_RM_RESYNC_LOST", Issuer: "PAI_LAUNCHER", Causer: "PAI_YARN",
			Type: "PLATFORM_FAILURE", Stage: "UNKNOWN", Behavior: "TRANSIENT_NORMAL", Reaction: "ALWAYS_RETRY",
		},
		{
			Code: -7351, Phrase: "APP_STOP_FRAMEWORK_REQUESTED", Issuer: "PAI_LAUNCHER", Causer: "USER_STOP",
			Type: "USER_STOP", Stage: "UNKNOWN", Behavior: "NON_TRANSIENT", Reaction: "NEVER_RETRY",
		},
		{
			Code: -7352, Phrase: "APP_AM_DIAGNOSTICS_LOST", Issuer: "PAI_LAUNCHER", Causer: "PAI_YARN",
			Type: "PLATFORM_FAILURE", Stage: "COMPLETING", Behavior: "TRANSIENT_NORMAL", Reaction: "ALWAYS_RETRY",
		},
		{
			Code: -7353, Phrase: "APP_AM_DIAGNOSTICS_DESERIALIZATION_FAILED", Issuer: "PAI_LAUNCHER",
			Causer: "PAI_YARN",
			Type:   "PLATFORM_FAILURE", Stage: "COMPLETING", Behavior: "TRANSIENT_NORMAL", Reaction: "ALWAYS_RETRY",
		},
		{
			Code: -7400, Phrase: "TASK_STOPPED_ON_APP_COMPLETION", Issuer: "PAI_LAUNCHER", Causer: "USER_STOP",
			Type: "USER_STOP", Stage: "UNKNOWN", Behavior: "NON_TRANSIENT", Reaction: "NEVER_RETRY",
		},
		{
			Code: -8000, Phrase: "CONTAINER_UNKNOWN_YARN_EXIT_STATUS", Issuer: "PAI_YARN", Causer: "UNKNOWN",
			Type: "UNKNOWN_FAILURE", Stage: "UNKNOWN", Behavior: "UNKNOWN", Reaction: "RETRY_TO_MAX",
		},
	}
}
