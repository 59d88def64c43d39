package registry

import "strconv"

// signals are Linux' on all of our architectures, from 1 on.
var signals = [...]string{
	"HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE", "KILL", "USR1", "SEGV", "USR2", "PIPE", "ALRM", "TERM",
	"STKFLT", "CHLD", "CONT", "STOP", "TSTP", "TTIN", "TTOU", "URG", "XCPU", "XFSZ", "VTALRM", "PROF", "WINCH", "IO",
	"PWR",
	"SYS",
}

// SignalName is the name of a signal by its number: SIGTERM. A real-time signal is `signal 40`.
func SignalName(n int) string {
	if n < 1 || n > len(signals) {
		return "signal " + strconv.Itoa(n)
	}
	return "SIG" + signals[n-1]
}
