package flags

// Flags that several verbs have, with the same words.
const (
	PAIReport          = "pai-exit-report"
	PAIReportUsage     = "print a failure on stderr in OpenPAI's form, for its launcher"
	RequireLimitsUsage = "end with 77 if a limit that the app asks for cannot be enforced"
)
