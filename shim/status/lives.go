package status

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
)

// ProcessLives tells whether a process of this host runs; a zombie does not.
func ProcessLives(pid int) bool {
	if pid <= 0 {
		return false
	}
	if err := syscall.Kill(pid, 0); err != nil && !errors.Is(err, syscall.EPERM) {
		return false
	}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, after, ok := strings.Cut(string(text[max(0, bytes.LastIndexByte(text, ')')):]), ") ") // proc_pid_stat(5)
	return err != nil || !ok || !strings.HasPrefix(after, "Z")
}
