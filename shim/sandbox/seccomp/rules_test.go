package seccomp

import (
	"encoding/binary"
	"errors"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/elastic/go-seccomp-bpf/arch"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

const (
	allow  = unix.SECCOMP_RET_ALLOW
	kill   = unix.SECCOMP_RET_KILL_PROCESS
	eperm  = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)
	enosys = unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)
)

// filter answers as the kernel would.
type filter struct {
	t  *testing.T
	vm *bpf.VM
}

func compiled(t *testing.T, r Rules) filter {
	t.Helper()
	if err := r.Check(); err != nil {
		t.Fatal(err)
	}
	program, err := r.program()
	if err != nil {
		t.Fatal(err)
	}
	vm, err := bpf.NewVM(program)
	if err != nil {
		t.Fatal(err)
	}
	return filter{t, vm}
}

// call is the answer to a call of an architecture with its first argument.
func (f filter) call(architecture uint32, number int, argument uint64) uint32 {
	f.t.Helper()
	// A struct seccomp_data, each word as the virtual machine reads a packet: the network's order within words, this
	// machine's order of words.
	data := make([]byte, 64)
	binary.BigEndian.PutUint32(data, uint32(number))
	binary.BigEndian.PutUint32(data[4:], architecture)
	binary.BigEndian.PutUint32(data[16:], uint32(argument))
	binary.BigEndian.PutUint32(data[20:], uint32(argument>>32))
	answer, err := f.vm.Run(data)
	if err != nil {
		f.t.Fatal(err)
	}
	return uint32(answer)
}

// of is the answer to a call by its name.
func (f filter) of(name string, argument uint64) uint32 {
	f.t.Helper()
	table := tables[runtime.GOARCH]
	number, ok := table.SyscallNames[name]
	if !ok {
		f.t.Fatalf("no call %s", name)
	}
	return f.call(uint32(table.ID), number, argument)
}

func TestDefaultRefuses(t *testing.T) {
	f := compiled(t, Rules{})
	for name := range strings.FieldsSeq(`keyctl add_key request_key bpf perf_event_open userfaultfd io_uring_setup io_uring_enter
		io_uring_register mount umount2 mount_setattr move_mount open_tree fsopen fsconfig fsmount fspick unshare setns pivot_root
		open_by_handle_at kexec_load kexec_file_load init_module finit_module delete_module reboot swapon swapoff acct quotactl
		syslog settimeofday clock_settime sethostname setdomainname fanotify_init lookup_dcookie nfsservctl vhangup kcmp
		pidfd_getfd process_madvise migrate_pages move_pages`) {
		if got := f.of(name, 0); got != eperm {
			t.Errorf("%s: got %#x, want EPERM", name, got)
		}
	}
	if got := f.of("clone3", 0); got != enosys {
		t.Errorf("clone3: got %#x, want ENOSYS", got)
	}
	for _, flag := range []uint64{
		unix.CLONE_NEWUSER, unix.CLONE_NEWNS, unix.CLONE_NEWPID, unix.CLONE_NEWNET, unix.CLONE_NEWIPC, unix.CLONE_NEWUTS, unix.CLONE_NEWCGROUP,
	} {
		for _, more := range []uint64{0, uint64(unix.SIGCHLD), unix.CLONE_VM | unix.CLONE_FILES, 1 << 40} {
			if got := f.of("clone", flag|more); got != eperm {
				t.Errorf("clone %#x: got %#x, want EPERM", flag|more, got)
			}
		}
	}
	for _, family := range []uint64{unix.AF_ALG, unix.AF_VSOCK, unix.AF_AX25, unix.AF_MAX, 1 << 32, 1<<32 | unix.AF_INET} {
		if got := f.of("socket", family); got != eperm {
			t.Errorf("socket %d: got %#x, want EPERM", family, got)
		}
	}
	for _, value := range []uint64{0x0040000, 0x0100000, 1, 0x20000 | 0x40000} { // ADDR_NO_RANDOMIZE and READ_IMPLIES_EXEC among them
		if got := f.of("personality", value); got != eperm {
			t.Errorf("personality %#x: got %#x, want EPERM", value, got)
		}
	}
}

func TestDefaultPermits(t *testing.T) {
	f := compiled(t, Rules{})
	for name := range strings.FieldsSeq(`read write openat openat2 mmap mprotect futex futex_waitv execve execveat exit_group rt_sigreturn
		prctl seccomp ptrace process_vm_readv rseq set_robust_list memfd_create pidfd_open statx getrandom epoll_pwait2 shmget
		sched_setaffinity mbind set_mempolicy get_mempolicy chroot setresuid setgroups capset landlock_restrict_self close_range
		io_setup mlock2 membarrier copy_file_range`) {
		if got := f.of(name, 0); got != allow {
			t.Errorf("%s: got %#x, want that it is permitted", name, got)
		}
	}
	for _, flags := range []uint64{uint64(unix.SIGCHLD), 0x3d0f00, unix.CLONE_VFORK | unix.CLONE_VM, 0x01200011} { // threads of glibc, fork
		if got := f.of("clone", flags); got != allow {
			t.Errorf("clone %#x: got %#x", flags, got)
		}
	}
	for _, family := range []uint64{unix.AF_UNIX, unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK, unix.AF_PACKET} {
		if got := f.of("socket", family); got != allow {
			t.Errorf("socket %d: got %#x", family, got)
		}
	}
	for _, value := range personalities {
		if got := f.of("personality", value); got != allow {
			t.Errorf("personality %#x: got %#x", value, got)
		}
	}
}

// Each number has the answer that the lists give its name: the library places the jumps, and a long list has long ones.
func TestEachNumber(t *testing.T) {
	f, table, named := compiled(t, Rules{}), tables[runtime.GOARCH], unconditional()
	newest := 0
	for _, name := range named {
		newest = max(newest, table.SyscallNames[name])
	}
	for number := range 1000 {
		name, want := table.SyscallNumbers[number], eperm
		switch {
		case number > newest, name == "clone3":
			want = enosys
		case slices.Contains([]string{"clone", "personality", "socket"}, name), name != "" && slices.Contains(named, name):
			want = allow
		}
		if got := f.call(uint32(table.ID), number, 0); got != want {
			t.Errorf("%d (%s): got %#x, want %#x", number, name, got, want)
		}
	}
	// A number below none.
	if got := f.call(uint32(table.ID), -1, 0); got != enosys {
		t.Errorf("-1: got %#x, want ENOSYS", got)
	}
}

// The number of a call means another one in another architecture.
func TestForeignArchitectures(t *testing.T) {
	f := compiled(t, Rules{})
	for _, foreign := range []*arch.Info{arch.I386, arch.X86_64, arch.ARM, arch.AARCH64, arch.S390X} {
		if foreign == tables[runtime.GOARCH] {
			continue
		}
		for number := range 500 {
			if got := f.call(uint32(foreign.ID), number, 0); got != kill {
				t.Fatalf("%s %d: got %#x, want that the process is killed", foreign.Name, number, got)
			}
		}
	}
	const x32 = 0x40000000
	for number := range 600 {
		if got := f.call(uint32(tables[runtime.GOARCH].ID), x32|number, 0); got != enosys {
			t.Fatalf("x32 %d: got %#x, want ENOSYS", number, got)
		}
	}
}

func TestRules(t *testing.T) {
	f := compiled(t, Rules{Allow: []string{"keyctl", "clone", "clone3", "socket", "read", "open_tree_attr"}, Deny: []string{"ptrace", "personality"}})
	for name, want := range map[string]uint32{
		"keyctl": allow, "clone3": allow, "read": allow, "open_tree_attr": allow, "add_key": eperm, "ptrace": eperm, "personality": eperm,
	} {
		if got := f.of(name, 0); got != want {
			t.Errorf("%s: got %#x, want %#x", name, got, want)
		}
	}
	if got := f.of("clone", unix.CLONE_NEWUSER); got != allow {
		t.Errorf("clone: got %#x", got)
	}
	if got := f.of("socket", unix.AF_ALG); got != allow {
		t.Errorf("socket: got %#x", got)
	}
	if got := compiled(t, Rules{Deny: []string{"clone3", "clone"}}).of("clone3", 0); got != eperm {
		t.Errorf("clone3 denied: got %#x", got)
	}
}

func TestRulesAreChecked(t *testing.T) {
	for _, tt := range []struct {
		rules Rules
		want  string
	}{
		{Rules{Allow: []string{"keyctl", "keyctI"}}, `allow[1]: no system call is called "keyctI"`},
		{Rules{Deny: []string{"SYS_ptrace"}}, `deny[0]: no system call is called "SYS_ptrace"`},
		{Rules{Deny: []string{"ptrace", "execve"}}, "deny[1]: without execve no program can be started"},
		{Rules{Allow: []string{"bpf"}, Deny: []string{"bpf"}}, "deny[0]: bpf is in allow as well"},
	} {
		err := tt.rules.Check()
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: got %v, want %s", tt.rules, err, tt.want)
		}
	}
	unknown, ok := errors.AsType[*UnknownError](Rules{Allow: []string{"keyctI"}}.Check())
	if !ok || !slices.Contains(unknown.Known, "keyctl") {
		t.Errorf("got %+v, want an error that knows keyctl", unknown)
	}
}

// Every name is a call of one of our architectures: one that is misspelled would be dropped without a word.
func TestEachNameIsKnown(t *testing.T) {
	known := names()
	for _, name := range unconditional() {
		if _, found := slices.BinarySearch(known, name); !found {
			t.Errorf("%s is no call of amd64 or arm64", name)
		}
	}
	for goarch, table := range tables {
		for _, name := range append(essential, "clone", "personality", "socket", "clone3") {
			if _, ok := table.SyscallNames[name]; !ok {
				t.Errorf("%s has no %s", goarch, name)
			}
		}
	}
}

func TestCompile(t *testing.T) {
	b, err := Rules{}.Compile()
	if err != nil {
		t.Fatal(err)
	}
	const instruction, most = 8, 4096
	if n := len(b) / instruction; len(b)%instruction != 0 || n < len(plainCalls)/20 || n > most {
		t.Errorf("got %d bytes", len(b))
	}
	if binary.NativeEndian.Uint32(b[4:]) != 4 { // the first instruction loads the architecture
		t.Errorf("the filter begins with %x", b[:8])
	}
}

func BenchmarkCompile(b *testing.B) {
	for b.Loop() {
		if _, err := (Rules{}).Compile(); err != nil {
			b.Fatal(err)
		}
	}
}
