package proc

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// StuckProcess is a process that SIGKILL did not end. State is that of proc(5): D waits for a device or a file server.
// WaitChannel is the kernel's function that it waits in; "" when that is not known. Err is set when the signal itself
// was refused.
type StuckProcess struct {
	PID         int
	Name        string
	State       byte
	WaitChannel string
	Err         error
}

func (p StuckProcess) String() string {
	s := fmt.Sprintf("%d %s (state %c", p.PID, p.Name, p.State)
	if p.WaitChannel != "" {
		s += " in " + p.WaitChannel
	}
	s += ")"
	if p.Err != nil {
		s += ": " + p.Err.Error()
	}
	return s
}

// StuckError says what could not be killed.
type StuckError struct{ Processes []StuckProcess }

func (e *StuckError) Error() string {
	names := make([]string, len(e.Processes))
	for i, p := range e.Processes {
		names[i] = p.String()
	}
	return "still alive after SIGKILL: " + strings.Join(names, ", ")
}

// Stuck names processes that SIGKILL did not end.
func Stuck(pids []int) *StuckError {
	e := &StuckError{}
	for _, pid := range pids {
		e.Processes = append(e.Processes, Describe(pid))
	}
	return e
}

// Describe says what can be known of a process that is stuck.
func Describe(pid int) StuckProcess {
	p := StuckProcess{PID: pid, Name: "unknown", State: '?', WaitChannel: WaitChannel(pid)}
	if s, err := (Host{}).Stat(pid); err == nil {
		p.Name, p.State = s.Name, s.State
	}
	return p
}

// WaitChannel is the kernel's function in which a process waits; "" when it runs, or when we may not know.
func WaitChannel(pid int) string {
	dir := filepath.Join("/proc", strconv.Itoa(pid))
	if b, err := os.ReadFile(filepath.Join(dir, "wchan")); err == nil {
		if name := strings.TrimSpace(string(b)); name != "" && name != "0" {
			return name
		}
	}
	b, err := os.ReadFile(filepath.Join(dir, "stack"))
	if err != nil {
		return ""
	}
	return topOfStack(string(b))
}

// topOfStack of /proc/<pid>/stack: `[<0>] do_wait+0x160/0x2f0` is do_wait.
func topOfStack(text string) string {
	top, _, _ := strings.Cut(text, "\n")
	_, name, _ := strings.Cut(top, "] ")
	name, _, _ = strings.Cut(name, "+")
	return strings.TrimSpace(name)
}
