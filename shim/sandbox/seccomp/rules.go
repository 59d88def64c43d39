package seccomp

import (
	"encoding/binary"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"

	bpfseccomp "github.com/elastic/go-seccomp-bpf"
	"github.com/elastic/go-seccomp-bpf/arch"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// Rules are what the operator changes of the default filter, by the names of system calls. A call that is allowed
// may have any arguments; one that is denied fails with EPERM. Names that only another architecture has are of no
// effect.
type Rules struct{ Allow, Deny []string }

// essential are the calls without which the guard can neither execute a program nor report why not.
var essential = []string{"execve", "write", "exit_group"}

// tables are the architectures that the guard is built for.
var tables = map[string]*arch.Info{"amd64": arch.X86_64, "arm64": arch.AARCH64}

// names are the system calls that Rules can name, sorted.
func names() []string {
	all := map[string]bool{}
	for _, table := range tables {
		for name := range table.SyscallNames {
			all[name] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// Check tells what is wrong with the rules, by the position of a name.
func (r Rules) Check() error {
	known := names()
	for _, list := range []struct {
		key   string
		names []string
	}{{"allow", r.Allow}, {"deny", r.Deny}} {
		for i, name := range list.names {
			if _, found := slices.BinarySearch(known, name); !found {
				return &UnknownError{Key: fmt.Sprintf("%s[%d]", list.key, i), Name: name, Known: known}
			}
		}
	}
	for i, name := range r.Deny {
		if slices.Contains(essential, name) {
			return fmt.Errorf("deny[%d]: without %s no program can be started", i, name)
		}
		if slices.Contains(r.Allow, name) {
			return fmt.Errorf("deny[%d]: %s is in allow as well: name it in one of them", i, name)
		}
	}
	return nil
}

// UnknownError says that no system call has a name.
type UnknownError struct {
	Key, Name string
	Known     []string
}

func (e *UnknownError) Error() string {
	return fmt.Sprintf("%s: no system call is called %q", e.Key, e.Name)
}

// Default is the filter where the policy says nothing. It must not be changed.
var Default = sync.OnceValues(func() ([]byte, error) { return Rules{}.Compile() })

// Compile makes the filter of this machine's architecture: an array of struct sock_filter.
func (r Rules) Compile() ([]byte, error) {
	program, err := r.program()
	if err != nil {
		return nil, fmt.Errorf("seccomp filter: %w", err)
	}
	raw, err := bpf.Assemble(program)
	if err != nil {
		return nil, fmt.Errorf("seccomp filter: %w", err)
	}
	var b []byte
	for _, i := range raw {
		b = binary.NativeEndian.AppendUint16(b, i.Op)
		b = append(b, i.Jt, i.Jf)
		b = binary.NativeEndian.AppendUint32(b, i.K)
	}
	return b, nil
}

// program is the filter for this machine. What it does not permit fails with EPERM.
func (r Rules) program() ([]bpf.Instruction, error) {
	table, ok := tables[runtime.GOARCH]
	if !ok {
		return nil, fmt.Errorf("no table of system calls for %s", runtime.GOARCH)
	}
	permitted := bpfseccomp.SyscallGroup{Action: bpfseccomp.ActionAllow}
	newest := 0
	for _, name := range slices.Compact(slices.Sorted(slices.Values(append(unconditional(), r.Allow...)))) {
		number, ok := table.SyscallNames[name]
		if !ok {
			continue
		}
		newest = max(newest, number)
		if !slices.Contains(r.Deny, name) {
			permitted.Names = append(permitted.Names, name)
		}
	}
	for _, c := range conditional() {
		if !slices.Contains(permitted.Names, c.Name) && !slices.Contains(r.Deny, c.Name) {
			permitted.NamesWithCondtions = append(permitted.NamesWithCondtions, c)
		}
	}
	policy := bpfseccomp.Policy{DefaultAction: bpfseccomp.ActionErrno, Syscalls: []bpfseccomp.SyscallGroup{permitted}}
	if !slices.Contains(r.Allow, "clone3") && !slices.Contains(r.Deny, "clone3") {
		// Its flags lie in memory, which a filter cannot read. A C library that is told that the kernel has no
		// clone3 calls clone.
		policy.Syscalls = append(policy.Syscalls, bpfseccomp.SyscallGroup{Names: []string{"clone3"}, Action: absent})
	}
	body, err := policy.Assemble()
	return append(prologue(table, newest), body...), err
}

func unconditional() []string {
	return strings.Fields(plainCalls + archCalls + " " + rootCalls + " " + numaCalls)
}

// conditional are the calls whose first argument decides; one of the conditions of a call suffices.
func conditional() []bpfseccomp.NameWithConditions {
	of := func(name string, operation bpfseccomp.Operation, values ...uint64) (all []bpfseccomp.NameWithConditions) {
		for _, value := range values {
			all = append(all, bpfseccomp.NameWithConditions{
				Name: name, Conditions: []bpfseccomp.Condition{{Operation: operation, Value: value}},
			})
		}
		return all
	}
	return slices.Concat(
		of("clone", bpfseccomp.BitsNotSet, newNamespaces),
		of("personality", bpfseccomp.Equal, personalities...),
		of("socket", bpfseccomp.Equal, families...),
	)
}

// absent answers that the kernel does not have the call.
const absent = bpfseccomp.ActionErrno | bpfseccomp.Action(unix.ENOSYS)

// prologue decides on what is no call of this architecture's table. A program of another one (i386 on amd64) is
// killed: a number means another call there. A call of x32, or newer than all that the filter knows, does not
// exist: C libraries then take an older one.
func prologue(table *arch.Info, newest int) []bpf.Instruction {
	const number, architecture, word = 0, 4, 4 // of struct seccomp_data
	return []bpf.Instruction{
		bpf.LoadAbsolute{Off: architecture, Size: word},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: uint32(table.ID), SkipTrue: 1},
		bpf.RetConstant{Val: uint32(bpfseccomp.ActionKillProcess)},
		bpf.LoadAbsolute{Off: number, Size: word},
		bpf.JumpIf{Cond: bpf.JumpGreaterThan, Val: uint32(newest), SkipFalse: 1},
		bpf.RetConstant{Val: uint32(absent)},
	}
}
