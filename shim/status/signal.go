package status

import (
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// ParseSignal reads `KILL`, `SIGKILL` or `9`.
func ParseSignal(text string) (int, error) {
	if n, err := strconv.Atoi(text); err == nil {
		if n < 1 || n > 64 {
			return 0, fmt.Errorf("signal %d: want 1…64", n)
		}
		return n, nil
	}
	if n := unix.SignalNum("SIG" + strings.TrimPrefix(strings.ToUpper(text), "SIG")); n != 0 {
		return int(n), nil
	}
	return 0, fmt.Errorf("signal %q: no such name", text)
}
