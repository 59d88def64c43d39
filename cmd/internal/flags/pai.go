package flags

// PAIReport names the flag that `muster run` and `muster agent` share.
const (
	PAIReport      = "pai-exit-report"
	PAIReportUsage = "print a failure on stderr in OpenPAI's form, between [PAI_RUNTIME_ERROR_START] and [PAI_RUNTIME_ERROR_END]"
)
