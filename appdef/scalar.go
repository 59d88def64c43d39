package appdef

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// longest limits durations: far longer than any job, and short enough to be exact as a float of seconds.
const longest = Seconds(10 * 365 * 24 * 3600)

// durationForms are examples of what ParseDuration reads, for a message.
const durationForms = "90, 90s, 5m, 1h30m or 2d"

// ParseDuration reads `90` (seconds), `90s`, `5m`, `1h30m`, `2d`.
func ParseDuration(text string) (Seconds, error) {
	bad := fmt.Errorf("duration %s: want %s", quote(text), durationForms)
	var s Seconds
	unit := Seconds(1)
	number, days := strings.CutSuffix(text, "d")
	if days {
		unit = 24 * 3600
	}
	if plain(number) {
		n, err := strconv.ParseFloat(number, 64)
		if err != nil {
			return 0, bad
		}
		s = Seconds(n) * unit
	} else {
		d, err := time.ParseDuration(text)
		if err != nil || strings.HasPrefix(text, "+") {
			return 0, bad
		}
		s = Seconds(d.Seconds())
	}
	if s < 0 || s > longest {
		return 0, fmt.Errorf("duration %s: want 0 to 10 years", quote(text))
	}
	return s, nil
}

// plain tells whether text is a decimal number without sign, exponent or unit.
func plain(text string) bool {
	return text != "" && strings.Trim(text, "0123456789.") == "" && strings.Count(text, ".") <= 1 && text != "."
}

// parseDurationRange reads `1s..1m`, or one duration that is both ends.
func parseDurationRange(text string) (low, high Seconds, err error) {
	from, to, two := strings.Cut(text, "..")
	if low, err = ParseDuration(from); err != nil {
		return 0, 0, err
	}
	if !two {
		return low, low, nil
	}
	if high, err = ParseDuration(to); err != nil {
		return 0, 0, err
	}
	if low > high {
		return 0, 0, fmt.Errorf("range %s: want the smaller end first", quote(text))
	}
	return low, high, nil
}

// ParseInt reads a whole number without exponent; blanks around it are allowed, as YARN's tools allow them.
func ParseInt(text string) (int, error) {
	n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 32)
	if err != nil {
		return 0, fmt.Errorf("number %s: want a whole number", quote(text))
	}
	return int(n), nil
}

// signals are the Linux signals that a definition may name.
var signals = [...]string{
	"HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE", "KILL", "USR1", "SEGV", "USR2", "PIPE", "ALRM",
	"TERM", "STKFLT", "CHLD", "CONT", "STOP", "TSTP", "TTIN", "TTOU", "URG", "XCPU", "XFSZ", "VTALRM", "PROF", "WINCH",
	"IO", "PWR", "SYS",
}

// parseSignal reads `TERM`, `SIGTERM`, `term` or `15` and gives the short name.
func parseSignal(text string) (string, error) {
	name := strings.TrimPrefix(strings.ToUpper(text), "SIG")
	if slices.Contains(signals[:], name) {
		return name, nil
	}
	if n, err := strconv.Atoi(text); err == nil && n >= 1 && n <= len(signals) {
		return signals[n-1], nil
	}
	return "", fmt.Errorf("signal %s: want a name such as TERM", quote(text))
}

var (
	envForm  = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	userForm = regexp.MustCompile(`^([a-z_][a-z0-9_-]*\$?|[0-9]+)(:([a-z_][a-z0-9_-]*\$?|[0-9]+))?$`)
	// secretForm is a reference to a secret: where it is, never its value.
	secretForm = regexp.MustCompile(`^(file|env|keyring|job):.+$`)
	limitForm  = regexp.MustCompile(`^(unlimited|[0-9]+)(:(unlimited|[0-9]+))?$`)
)

// ulimits are the names of setrlimit(2), as ulimit and Docker spell them.
var ulimits = [...]string{
	"as", "core", "cpu", "data", "fsize", "locks", "memlock", "msgqueue", "nice", "nofile",
	"nproc", "rss", "rtprio", "rttime", "sigpending", "stack",
}

func globOK(pattern string) bool {
	_, err := path.Match(pattern, "")
	return err == nil
}
