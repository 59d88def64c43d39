package sandbox

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/muster-agent/muster/tests/need"
)

// A filter that looks at numbers alone is passed by the calls of another architecture, whose numbers mean other calls. An
// amd64 program reaches those of i386 by an instruction of its own.
func TestAttackByCallsOfAnotherArchitecture(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		need.Skip(t, "amd64 alone has the calls of i386 beside its own")
	}
	// The first ends with 0 where it is let through, the second with the error of its call.
	foreign := []byte{
		0xb8, 0x14, 0, 0, 0, // mov eax, 20: getpid of i386
		0xcd, 0x80, // int 0x80
		0x31, 0xff, // xor edi, edi
		0xb8, 0xe7, 0, 0, 0, // mov eax, 231: exit_group
		0x0f, 0x05, // syscall
	}
	x32 := []byte{
		0xb8, 0x27, 0, 0, 0x40, // mov eax, 0x40000027: getpid of x32
		0x0f, 0x05, // syscall
		0x89, 0xc7, // mov edi, eax
		0xf7, 0xdf, // neg edi
		0xb8, 0xe7, 0, 0, 0, // mov eax, 231: exit_group
		0x0f, 0x05, // syscall
	}
	eachEngineAndUser(t, func(t *testing.T, start func(func(*Options)) *Guard) {
		dir := filepath.Join(filepath.Dir(appName), filepath.Base(t.TempDir()))
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		for name, code := range map[string][]byte{"i386": foreign, "x32": x32} {
			if err := os.WriteFile(filepath.Join(dir, name), smallProgram(code), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		g := start(nil)
		run := func(name string, want func(Exit) bool) {
			t.Helper()
			if _, err := g.Start(Spec{Argv: []string{filepath.Join(dir, name)}, Dir: "/", Env: []string{}}); err != nil {
				t.Fatal(err)
			}
			x := await[Exited](t, g).Exit
			await[Empty](t, g)
			if !want(x) {
				t.Errorf("%s: %s", name, x.Message)
			}
		}
		run("i386", func(x Exit) bool { return x.Signal == int(syscall.SIGSYS) })
		run("x32", func(x Exit) bool { return deref(x.Code) == int(unix.ENOSYS) })
	})
}

// smallProgram is an ELF program of amd64 that is nothing but this code.
func smallProgram(code []byte) []byte {
	const base, header = 0x400000, 64 + 56
	var b bytes.Buffer
	b.Write([]byte{0x7f, 'E', 'L', 'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0})
	size := uint64(header + len(code))
	for _, field := range []any{
		uint16(2), uint16(62), uint32(1), uint64(base + header), uint64(64), uint64(0), // executable, amd64, entry, program headers
		uint32(0), uint16(64), uint16(56), uint16(1), uint16(0), uint16(0), uint16(0),
		uint32(1), uint32(5), uint64(0), uint64(base), uint64(base), size, size, uint64(0x1000), // load, readable and executable
	} {
		_ = binary.Write(&b, binary.LittleEndian, field) // to memory
	}
	return append(b.Bytes(), code...)
}
