package history

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// clockVariable names the file from which an agent with a clock of its own reads by how many seconds it is wrong.
const clockVariable = "HISTORY_CLOCK"

// The library's Now, and what the agent of a host with a clock of its own has there. libfaketime cannot do it: muster is
// static, and Go asks the kernel itself.
const (
	realNow  = "sec, nsec, mono := runtimeNow()\n"
	falseNow = realNow + "\tsec += falseBy()\n"
	falseBy  = `package time

import (
	"syscall"
	"unsafe"
)

var falseClock = func() *int64 {
	path, _ := syscall.Getenv("` + clockVariable + `")
	fd, err := syscall.Open(path, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return new(int64)
	}
	defer syscall.Close(fd)
	page, err := syscall.Mmap(fd, 0, 8, syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		return new(int64)
	}
	return (*int64)(unsafe.Pointer(&page[0]))
}()

func falseBy() int64 { return *falseClock }
`
)

// buildFalseClock builds muster with a wall clock that a test steps while the agent runs; monotonic time is untouched, as
// when an operator sets the clock.
func buildFalseClock(t *testing.T, folder string) (program string) {
	t.Helper()
	out, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	source := filepath.Join(strings.TrimSpace(string(out)), "src", "time", "time.go")
	text, err := os.ReadFile(source)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(text), realNow); n != 1 {
		t.Fatalf("%s: the first line of Now is there %d times", source, n)
	}
	now, by, program := filepath.Join(folder, "time.go"), filepath.Join(folder, "false.go"), filepath.Join(folder, "muster")
	replaced, err := json.Marshal(map[string]any{"Replace": map[string]string{
		source: now, filepath.Join(filepath.Dir(source), "false.go"): by,
	}})
	if err != nil {
		t.Fatal(err)
	}
	overlay := filepath.Join(folder, "overlay.json")
	for path, content := range map[string]string{
		now: strings.Replace(string(text), realNow, falseNow, 1), by: falseBy, overlay: string(replaced),
	} {
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	build := exec.Command("go", "build", "-overlay", overlay, "-trimpath", "-tags", "netgo osusergo", "-ldflags",
		`-s -w -extldflags "-static"`, "-o", program, "../../cmd/muster")
	build.Env = append(os.Environ(), "CGO_ENABLED=1", "CGO_CFLAGS=-O2 -g -Wno-deprecated-declarations")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%q: %v\n%s", build.Args, err, out)
	}
	return program
}

// setClock makes a host's wall clock wrong by that much.
func setClock(path string, by time.Duration) error {
	content := binary.NativeEndian.AppendUint64(nil, uint64(int64(by/time.Second)))
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	if _, err := f.WriteAt(content, 0); err != nil { // the agents have the file mapped: it must stay the same one
		return fmt.Errorf("%s: %w", path, err)
	}
	return f.Close()
}
