package proc

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// Host reads the kernel's files under Root; "" is the machine itself, tests set a folder.
type Host struct {
	Root string
	send func(pid int, sig syscall.Signal) error // kill(2); nil: the kernel's, in a folder nobody's
}

// Facts name one process among all that ever were, as a member record keeps them.
type Facts struct {
	Machine string // DMI uuid and machine-id; the uuid is readable for root only. Empty: unknown, and no proof
	Boot    string // boot id, a uuid
	PidNS   string // inode of the pid namespace
	PID     int
	Start   uint64 // clock ticks after boot
}

// Liveness is what the files of this host say of a process.
type Liveness int

// Unknown means that the process may live where this process cannot look: another machine or pid namespace.
const (
	Unknown Liveness = iota
	Alive
	Dead
)

func (l Liveness) String() string { return [...]string{"unknown", "alive", "dead"}[l] }

// SelfFacts are those of the calling process.
func SelfFacts() (Facts, error) { return Host{}.Facts(os.Getpid()) }

// Facts of the process pid, which must be in the caller's pid namespace.
func (h Host) Facts(pid int) (Facts, error) {
	f, err := h.here()
	if err != nil {
		return Facts{}, err
	}
	s, err := h.Stat(pid)
	if err != nil {
		return Facts{}, err
	}
	f.PID, f.Start = pid, s.Start
	return f, nil
}

// here are the facts that all processes of this pid namespace share.
func (h Host) here() (Facts, error) {
	boot, err := h.text("proc/sys/kernel/random/boot_id")
	if err != nil {
		return Facts{}, fmt.Errorf("boot id: %w", err)
	}
	link, err := os.Readlink(h.path("proc/self/ns/pid"))
	if err != nil {
		return Facts{}, fmt.Errorf("pid namespace: %w", err)
	}
	machine, err := h.Machine()
	if err != nil {
		return Facts{}, err
	}
	return Facts{Machine: machine, Boot: boot, PidNS: strings.Trim(strings.TrimPrefix(link, "pid:"), "[]")}, nil
}

// Machine is `<DMI uuid>/<machine-id>`; a part that is absent or not readable is empty. Without either it is empty: an
// unknown machine equals no other.
func (h Host) Machine() (string, error) {
	var parts [2]string
	for i, path := range []string{"sys/class/dmi/id/product_uuid", "etc/machine-id"} {
		text, err := h.text(path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrPermission) {
			return "", fmt.Errorf("machine: %w", err)
		}
		parts[i] = strings.ToLower(text)
	}
	if parts[0] == "" && parts[1] == "" {
		return "", nil
	}
	return parts[0] + "/" + parts[1], nil
}

// Alive says whether the process of f still exists. Dead is a proof: the same machine has booted since, or it is the
// same boot and pid namespace and no process has that number and start.
func (h Host) Alive(f Facts) (Liveness, error) {
	machine, err := h.Machine()
	if err != nil || machine == "" || f.Machine != machine {
		return Unknown, err
	}
	return h.AliveHere(f)
}

// AliveHere is Alive for a process that is known to have run on this machine, whatever f.Machine is.
func (h Host) AliveHere(f Facts) (Liveness, error) {
	here, err := h.here()
	switch {
	case err != nil:
		return Unknown, err
	case f.Boot == "":
		return Unknown, nil
	case f.Boot != here.Boot:
		return Dead, nil
	case f.PidNS != here.PidNS:
		return Unknown, nil
	}
	s, err := h.Stat(f.PID)
	switch {
	case isNoProcess(err) && h.exists(f.PID):
		return Unknown, nil // it is hidden from us, and may be another of the same number
	case isNoProcess(err):
		return Dead, nil
	case err != nil:
		return Unknown, err
	case s.Start == f.Start && s.Alive():
		return Alive, nil
	default:
		return Dead, nil
	}
}

// Stat reads /proc/<pid>/stat.
func (h Host) Stat(pid int) (Stat, error) {
	line, err := os.ReadFile(h.path("proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return Stat{}, fmt.Errorf("process %d: %w", pid, err)
	}
	return parseStat(line)
}

// Processes are all that /proc shows, in rising order of pid. Those that end meanwhile are left out.
func (h Host) Processes() ([]Stat, error) {
	entries, err := os.ReadDir(h.path("proc"))
	if err != nil {
		return nil, fmt.Errorf("processes: %w", err)
	}
	var all []Stat
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		s, err := h.Stat(pid)
		switch {
		case err == nil:
			all = append(all, s)
		case !isNoProcess(err):
			return nil, err
		}
	}
	slices.SortFunc(all, func(a, b Stat) int { return a.PID - b.PID })
	return all, nil
}

// environ reads /proc/<pid>/environ; nil when it may not be read.
func (h Host) environ(pid int) []string {
	b, err := os.ReadFile(h.path("proc", strconv.Itoa(pid), "environ"))
	if err != nil {
		return nil
	}
	return strings.Split(strings.TrimRight(string(b), "\x00"), "\x00")
}

// exists asks the kernel for a process that /proc does not show: one of another user is hidden where /proc is mounted
// with hidepid=2 (proc(5)).
func (h Host) exists(pid int) bool {
	send := h.send
	switch {
	case pid <= 0 || send == nil && h.Root != "":
		return false
	case send == nil:
		send = syscall.Kill
	}
	err := send(pid, 0)
	return err == nil || errors.Is(err, syscall.EPERM)
}

// isNoProcess also knows ESRCH, the answer of a process that ends between open and read.
func isNoProcess(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH)
}

func (h Host) text(path string) (string, error) {
	b, err := os.ReadFile(h.path(path))
	return strings.TrimSpace(string(b)), err
}

func (h Host) path(parts ...string) string {
	root := h.Root
	if root == "" {
		root = "/"
	}
	return filepath.Join(append([]string{root}, parts...)...)
}
