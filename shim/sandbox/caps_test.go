package sandbox

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/muster-agent/muster/shim/sandbox/guard"
	"github.com/muster-agent/muster/tests/need"
)

// holdings prints what a process may have: its capabilities, no_new_privs, seccomp mode, umask and soft:hard core limit.
const holdings = `sed -n 's/^\(Cap[A-Z][a-z]*\|NoNewPrivs\|Seccomp\):\t0*\([0-9a-f]\)/\1 \2/p' /proc/self/status; umask; echo $(ulimit -Sc):$(ulimit -Hc)`

func TestWhatAProcessIsHeldTo(t *testing.T) {
	need.Root(t)
	mask := uint32(0o27)
	core := map[string]Rlimit{"core": {512, 1024}}
	for _, c := range []struct {
		name    string
		options Options
		spec    Spec
		want    string
	}{
		{
			"root with the default",
			Options{},
			Spec{Umask: &mask, Rlimits: core},
			"CapInh 0 CapPrm 405fb CapEff 405fb CapBnd 405fb CapAmb 0 NoNewPrivs 1 Seccomp 2 0027 1:2",
		},
		{
			"the spec can only narrow",
			Options{Caps: new(DefaultCaps)},
			Spec{Caps: new(Caps(1<<unix.CAP_SYS_ADMIN | 1<<unix.CAP_KILL)), Umask: &mask, Rlimits: core},
			"CapInh 0 CapPrm 20 CapEff 20 CapBnd 20 CapAmb 0 NoNewPrivs 1 Seccomp 2 0027 1:2",
		},
		{
			"another user has none",
			Options{Confine: Confinement{User: nobody(t)}},
			Spec{Umask: &mask, Rlimits: core},
			"CapInh 0 CapPrm 0 CapEff 0 CapBnd 405fb CapAmb 0 NoNewPrivs 1 Seccomp 2 0027 1:2",
		},
		{
			"what the operator adds",
			Options{Caps: new(DefaultCaps | 1<<unix.CAP_NET_RAW | 1<<unix.CAP_SYS_PTRACE), Confine: Confinement{Unfiltered: true}},
			Spec{Umask: &mask, Rlimits: core},
			"CapInh 0 CapPrm c25fb CapEff c25fb CapBnd c25fb CapAmb 0 NoNewPrivs 0 Seccomp 0 0027 1:2",
		},
		{
			"a filter brings no_new_privs",
			Options{Caps: new(Caps(0)), Confine: Confinement{Seccomp: filter(insn{unix.BPF_RET, 0, 0, unix.SECCOMP_RET_ALLOW})}},
			Spec{Umask: &mask, Rlimits: core},
			"CapInh 0 CapPrm 0 CapEff 0 CapBnd 0 CapAmb 0 NoNewPrivs 1 Seccomp 2 0027 1:2",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := processGuard(t, c.options)
			c.spec.Argv, c.spec.Dir = []string{"sh", "-c", holdings}, "/"
			start(t, g, c.spec)
			await[Empty](t, g)
			got := strings.Join(strings.Fields(readFile(t, g.options.LogDir, "stdout.log")), " ")
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("-want +got:\n%s%s", diff, readFile(t, g.options.LogDir, "stderr.log"))
			}
		})
	}
}

// Each engine gives a root the default set, and what the operator adds to it, and another user none.
func TestCapabilitiesInEachEngine(t *testing.T) {
	need.Root(t)
	eachEngineAndUser(t, func(t *testing.T, start func(func(*Options)) *Guard) {
		for _, added := range []Caps{0, 1 << unix.CAP_NET_RAW} {
			var user *guard.User
			g := start(func(o *Options) {
				if user = o.Confine.User; added != 0 {
					o.Caps, o.Confine.Instance = new(DefaultCaps|added), "worker-1"
				}
			})
			most := 0x405fb | added
			own := most
			if user != nil && user.UID != 0 {
				own = 0
			}
			want := fmt.Sprintf("CapInh 0 CapPrm %x CapEff %x CapBnd %x CapAmb 0 NoNewPrivs 1 Seccomp 2", own, own, most)
			got := strings.Join(strings.Fields(inside(t, g, holdings))[:14], " ")
			if got != want {
				t.Errorf("with %x added:\n got %s\nwant %s", added, got, want)
			}
		}
	})
}

// insn is a struct sock_filter.
type insn struct {
	code   uint16
	jt, jf uint8
	k      uint32
}

func filter(program ...insn) []byte {
	var b []byte
	for _, i := range program {
		b = binary.NativeEndian.AppendUint16(b, i.code)
		b = append(b, i.jt, i.jf)
		b = binary.NativeEndian.AppendUint32(b, i.k)
	}
	return b
}

// deny is a filter that answers errno to one system call and permits the others.
func deny(number int, errno syscall.Errno) []byte {
	return filter(
		insn{unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, 0, 0, 0}, // seccomp_data.nr
		insn{unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, 0, 1, uint32(number)},
		insn{unix.BPF_RET, 0, 0, unix.SECCOMP_RET_ERRNO | uint32(errno)},
		insn{unix.BPF_RET, 0, 0, unix.SECCOMP_RET_ALLOW},
	)
}

func TestFilterHoldsTheProcessAndItsExec(t *testing.T) {
	g := processGuard(t, Options{Confine: Confinement{Seccomp: deny(unix.SYS_UNAME, syscall.EXDEV)}})
	start(t, g, Spec{Argv: []string{"uname"}})
	await[Empty](t, g)
	if got := readFile(t, g.options.LogDir, "stderr.log"); !strings.Contains(got, "Invalid cross-device link") {
		t.Errorf("uname says %q", got)
	}
	// An exec that fails behind the filter is still told.
	if _, err := g.Start(Spec{Argv: []string{"/no/such/program"}}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("start: %v", err)
	}
	g = processGuard(t, Options{Confine: Confinement{Seccomp: deny(unix.SYS_EXECVE, syscall.EXDEV)}})
	if _, err := g.Start(Spec{Argv: []string{"/bin/true"}}); !errors.Is(err, syscall.EXDEV) {
		t.Errorf("start where execve is denied: %v", err)
	}
	g = processGuard(t, Options{Confine: Confinement{Seccomp: filter(insn{0xffff, 0, 0, 0})}})
	want := "start true: install seccomp filter: invalid argument"
	if _, err := g.Start(Spec{Argv: []string{"/bin/true"}}); err == nil || err.Error() != want {
		t.Errorf("start with a filter that is none: %v, want %s", err, want)
	}
}

// An app that runs as root, without CAP_SYS_PTRACE, must find no way into the guard, which is root too.
func TestRootCannotLookIntoTheGuard(t *testing.T) {
	need.Root(t)
	g := processGuard(t, Options{Caps: new(DefaultCaps)})
	start(t, g, Spec{Argv: []string{self(t), "as-prier"}, Dir: "/"})
	await[Empty](t, g)
	if got, want := readFile(t, g.options.LogDir, "stdout.log"), ""; got != want {
		t.Errorf("it got at\n%s", got)
	}
	if got := readFile(t, g.options.LogDir, "stderr.log"); got != "" {
		t.Error(got)
	}
}

// asPrier tries the ways into its parent and prints those that are open. The names in its fd folder may be
// listed by root; where they lead may not.
func asPrier([]string) error {
	proc := filepath.Join("/proc", strconv.Itoa(os.Getppid()))
	for name, try := range map[string]func() error{
		"fdinfo":   func() error { _, err := os.ReadDir(filepath.Join(proc, "fdinfo")); return err },
		"fd/3":     func() error { _, err := os.Open(filepath.Join(proc, "fd/3")); return err },
		"fd/4":     func() error { _, err := os.Readlink(filepath.Join(proc, "fd/4")); return err },
		"exe":      func() error { _, err := os.Open(filepath.Join(proc, "exe")); return err },
		"exe link": func() error { _, err := os.Readlink(filepath.Join(proc, "exe")); return err },
		"environ":  func() error { _, err := os.ReadFile(filepath.Join(proc, "environ")); return err },
		"maps":     func() error { _, err := os.ReadFile(filepath.Join(proc, "maps")); return err },
		"mem":      func() error { _, err := os.OpenFile(filepath.Join(proc, "mem"), os.O_RDWR, 0); return err },
		"root":     func() error { _, err := os.Readlink(filepath.Join(proc, "root")); return err },
		"cwd":      func() error { _, err := os.ReadDir(filepath.Join(proc, "cwd")); return err },
		"ns":       func() error { _, err := os.Open(filepath.Join(proc, "ns/mnt")); return err },
		"ptrace":   func() error { return unix.PtraceAttach(os.Getppid()) },
		"pidfd_getfd": func() error {
			fd, err := unix.PidfdOpen(os.Getppid(), 0)
			if err != nil {
				return err
			}
			_, err = unix.PidfdGetfd(fd, guard.FDSocket, 0)
			return err
		},
		"process_vm_readv": func() error {
			b := make([]byte, 8)
			_, err := unix.ProcessVMReadv(os.Getppid(), []unix.Iovec{{Base: &b[0], Len: 8}}, []unix.RemoteIovec{{Base: 0x400000, Len: 8}}, 0)
			return err
		},
	} {
		err := try()
		if err == nil {
			os.Stdout.WriteString(name + "\n")
		} else if !errors.Is(err, os.ErrPermission) {
			return errors.Join(errors.New(name), err)
		}
	}
	return nil
}
