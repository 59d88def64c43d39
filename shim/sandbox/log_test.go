package sandbox

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/muster-agent/muster/tests/need"
)

func TestLogsRotateWithoutLoss(t *testing.T) {
	const mib = 1 << 20
	g := processGuard(t, Options{RotateBytes: mib, Keep: 4})
	start(t, g, Spec{Argv: []string{self(t), "as-writer", strconv.Itoa(3*mib + 4096), "8192"}})
	await[Empty](t, g)
	dir := g.options.LogDir
	var all string
	for _, name := range []string{"stdout.log.3", "stdout.log.2", "stdout.log.1", "stdout.log"} {
		text := readFile(t, dir, name)
		if name != "stdout.log" && len(text) != mib {
			t.Errorf("%s has %d bytes, want %d", name, len(text), mib)
		}
		all += text
	}
	wantPattern(t, all, 3*mib+4096)
	wantPattern(t, readFile(t, dir, "stderr.log"), 8192)
}

func TestLogsKeepTheNewest(t *testing.T) {
	const size = 64 << 10
	g := processGuard(t, Options{RotateBytes: size, Keep: 2})
	start(t, g, Spec{Argv: []string{self(t), "as-writer", strconv.Itoa(10*size + 8), "0"}})
	await[Empty](t, g)
	entries, err := os.ReadDir(g.options.LogDir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if want := []string{"stderr.log", "stdout.log", "stdout.log.1"}; !slices.Equal(names, want) {
		t.Errorf("files %v, want %v", names, want)
	}
	last := readFile(t, g.options.LogDir, "stdout.log")
	if len(last) != 8 || binary.LittleEndian.Uint64([]byte(last)) != 10*size {
		t.Errorf("stdout.log = %x, want the last 8 bytes written", last)
	}
}

func wantPattern(t *testing.T, text string, size int) {
	t.Helper()
	if len(text) != size {
		t.Fatalf("%d bytes, want %d", len(text), size)
	}
	for i := 0; i < size; i += 8 {
		if got := binary.LittleEndian.Uint64([]byte(text[i : i+8])); got != uint64(i) {
			t.Fatalf("at %d: %d", i, got)
		}
	}
}

func TestFullDiskNeverStopsTheApp(t *testing.T) {
	need.Root(t)
	const mib = 1 << 20
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=1m"); err != nil {
		need.Skip(t, "mount tmpfs: "+err.Error())
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	g := processGuard(t, Options{LogDir: dir})
	start(t, g, Spec{Attempt: 6, Argv: []string{self(t), "as-writer", strconv.Itoa(20 * mib), "4096"}})
	lost := map[string]int64{}
	count := func(e Event) {
		if l, ok := e.(LogLost); ok {
			lost[l.Stream] += l.Bytes
			if !errors.Is(l.Err, syscall.ENOSPC) || l.Attempt != 6 {
				t.Errorf("lost %+v, want ENOSPC of attempt 6", l)
			}
		}
	}
	if x := await[Exited](t, g, count); deref(x.Exit.Code) != 0 {
		t.Errorf("exited %+v", x)
	}
	await[Empty](t, g, count)
	for stream, written := range map[string]int64{"stdout": 20 * mib, "stderr": 4096} {
		info, err := os.Stat(filepath.Join(dir, stream+".log"))
		if err != nil {
			t.Fatal(err)
		}
		if info.Size()+lost[stream] != written {
			t.Errorf("%s: %d bytes kept, %d lost, %d written", stream, info.Size(), lost[stream], written)
		}
	}
	if lost["stdout"] < 18*mib {
		t.Errorf("lost %v", lost)
	}
}

func TestLogsThatAreNoFilesAreNotFollowed(t *testing.T) {
	dir := t.TempDir()
	victim := filepath.Join(t.TempDir(), "victim")
	if err := errors.Join(os.WriteFile(victim, nil, 0o600), os.Symlink(victim, filepath.Join(dir, "stdout.log")),
		syscall.Mkfifo(filepath.Join(dir, "stderr.log"), 0o600)); err != nil {
		t.Fatal(err)
	}
	g := processGuard(t, Options{LogDir: dir})
	start(t, g, Spec{Argv: []string{"sh", "-c", "echo out; echo err >&2"}})
	lost := map[string]int64{}
	await[Empty](t, g, func(e Event) {
		if l, ok := e.(LogLost); ok {
			lost[l.Stream] += l.Bytes
		}
	})
	if lost["stdout"] != 4 || lost["stderr"] != 4 || readFile(t, victim) != "" {
		t.Errorf("lost %v, victim %q", lost, readFile(t, victim))
	}
}

func TestLogsFollowOneWhoCutsThem(t *testing.T) {
	g := processGuard(t, Options{})
	dir := fifoDir(t)
	start(t, g, Spec{Argv: []string{"sh", "-c", "echo before; read x <fifo; echo after"}, Dir: dir})
	log := filepath.Join(g.options.LogDir, "stdout.log")
	waitForLine(t, log, "before")
	if err := os.Truncate(log, 0); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "fifo"), []byte("go\n"), 0); err != nil {
		t.Fatal(err)
	}
	await[Empty](t, g)
	if got := readFile(t, log); got != "after\n" {
		t.Errorf("log %q, want %q", got, "after\n")
	}
}

func BenchmarkLogPath(b *testing.B) {
	dir := b.TempDir()
	const size = 512 << 20
	exe, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	g, err := Process{}.StartGuard(b.Context(), Options{LogDir: dir})
	if err != nil {
		b.Skip(err)
	}
	defer g.Close()
	b.SetBytes(size)
	for b.Loop() {
		if _, err := g.Start(Spec{Argv: []string{exe, "as-writer", strconv.Itoa(size), "0"}}); err != nil {
			b.Fatal(err)
		}
		for e := range g.Events() {
			if _, ok := e.(Empty); ok {
				break
			}
		}
	}
}

func BenchmarkStartOfTrue(b *testing.B) {
	g, err := Process{}.StartGuard(b.Context(), Options{LogDir: b.TempDir()})
	if err != nil {
		b.Skip(err)
	}
	defer g.Close()
	for b.Loop() {
		if _, err := g.Start(Spec{Argv: []string{"/bin/true"}}); err != nil {
			b.Fatal(err)
		}
		for e := range g.Events() {
			if _, ok := e.(Empty); ok {
				break
			}
		}
	}
}

// In place of a log the process puts a name of somebody else's file, or a file that is another user's.
func TestAttackLogIsAnothersFile(t *testing.T) {
	dir := t.TempDir()
	victims := []string{filepath.Join(dir, "victim-0"), filepath.Join(dir, "victim-1")}
	g := processGuard(t, Options{LogDir: t.TempDir()})
	logs := []string{filepath.Join(g.options.LogDir, "stdout.log"), filepath.Join(g.options.LogDir, "stderr.log")}
	for _, victim := range victims {
		if err := os.WriteFile(victim, []byte("precious"), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.Link(victims[0], logs[0]), os.Link(victims[1], logs[1])); err != nil {
		t.Fatal(err)
	}
	want := []error{unix.EMLINK, unix.EMLINK}
	if os.Geteuid() == 0 { // it was moved here
		if err := errors.Join(os.Remove(victims[1]), os.Chown(logs[1], 54321, 54321)); err != nil {
			t.Fatal(err)
		}
		victims[1], want[1] = logs[1], unix.EPERM
	}
	start(t, g, Spec{Argv: []string{self(t), "as-writer", "4096", "4096"}})
	lost := map[string]error{}
	await[Empty](t, g, func(e Event) {
		if l, ok := e.(LogLost); ok {
			lost[l.Stream] = l.Err
		}
	})
	for i, stream := range []string{"stdout", "stderr"} {
		if text := readFile(t, victims[i]); text != "precious" {
			t.Errorf("%s was written to: %q", victims[i], text[:min(len(text), 40)])
		}
		if !errors.Is(lost[stream], want[i]) {
			t.Errorf("%s: lost because of %v, want %v", stream, lost[stream], want[i])
		}
	}
}
